"""A killed run keeps its logged verdicts and leaves no process; the next run cleans up after it.

`python -m tests.hostile kills --count N` tries more kills than this sample, and
`tests/hostile/kills.py` says what must hold.

The tested code is in `dmlconf/workers/scratch.py`, `dmlconf/workers/pool.py` and
`dmlconf/run_log/log.py`.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hostile.kills import kill

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are observed in /proc"),
]

SAMPLE = 32
"""At least five kills of each kind in `VICTIMS`."""


def test_kills_lose_no_verdict_and_leave_no_process_or_folder(
    tmp_path: Path,
) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda seed: kill(seed, tmp_path / str(seed)), range(SAMPLE)))
    assert [problem for result in results for problem in result.problems] == []
    killed = [result for result in results if not result.end.startswith("nobody")]
    assert len(killed) > SAMPLE / 3
