"""A killed run keeps logged verdicts and leaves no process; the next removes its temporary folder.

`python -m tests.hostile kills --count N` tries more kills than this sample.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hostile.kills import kill

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are watched by way of /proc"),
]

SAMPLE = 32


def test_no_kill_loses_a_verdict_or_leaves_anything(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda seed: kill(seed, tmp_path / str(seed)), range(SAMPLE)))
    assert [problem for result in results for problem in result.problems] == []
    # A sample without any kill would show nothing.
    assert sum(not result.end.startswith("nobody") for result in results) > SAMPLE / 3
