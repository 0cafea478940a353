"""Mutants, which are files with random changes, make dmlconf neither crash nor hang.

A trial feeds mutants to dmlconf; a campaign is a series of trials. The command
`python -m tests.hostile mutants --count N` tries more mutants than these samples.

The tested code is in `dmlconf/documents/reader.py`, `dmlconf/cases/loading/loader.py`,
`dmlconf/run_log/log.py`, `dmlconf/backends/recording/file.py`,
`dmlconf/certification/verification.py` and wherever else `SUBJECTS` leads, and in
`tests/hostile/trial.py` and `tests/hostile/campaign.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.hostile.subjects import SUBJECTS
from tests.hostile.trial import trial

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are watched by way of /proc"),
]

SAMPLE = 400
"""Mutants of each kind of file that is not in `SLOW_SAMPLES`."""
SLOW_SAMPLES = {"plugin": 60, "graph": 60, "matrix": 150, "log-kinds": 200}
"""Mutants of each slow kind: plugins start workers, and graphs have up to 2,000 nodes."""


@pytest.mark.parametrize("kind", SUBJECTS)
def test_no_mutant_of_a_sample_makes_dmlconf_crash_or_hang(tmp_path: Path, kind: str) -> None:
    assert "\n".join(map(str, trial(kind, tmp_path, 1, SLOW_SAMPLES.get(kind, SAMPLE)))) == ""


@pytest.mark.parametrize(
    ("canary", "problem"),
    [
        ("works on", "more than 1 seconds of work"),
        ("takes memory", "MiB of memory"),
        ("dies", "the process ended, -6"),
        ("raises", "ZeroDivisionError: on purpose"),
    ],
)
def test_a_trial_notices_each_problem_and_tries_the_next_seed(
    tmp_path: Path, canary: str, problem: str
) -> None:
    """Canaries, the pretended kinds of file in `canaries.py`, hang or fail on purpose."""
    seconds = 1 if canary == "works on" else 60
    findings = list(trial(canary, tmp_path, 7, 2, most_seconds=seconds))
    assert [finding.seed for finding in findings] == [7, 8]
    assert all(problem in finding.problem for finding in findings)


def test_a_seed_makes_the_same_mutant_again(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = set()
    for kind, subject in SUBJECTS.items():
        for seed in range(9):
            first = subject.mutant(Random(f"{kind}:{seed}")).content
            with monkeypatch.context() as later:
                later.setattr(time, "time", lambda: 2e9)  # Archives must not contain the time.
                assert subject.mutant(Random(f"{kind}:{seed}")).content == first
            contents.add(first)
    # Nearly all of the nine mutants of a kind differ.
    assert len(contents) > 8 * len(SUBJECTS)


def test_a_campaign_continues_where_it_was_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.hostile", "campaign", "--folder", str(tmp_path)]
    root = Path(__file__).resolve().parents[2]

    def campaign(*options: str) -> str:
        done = subprocess.run(
            [*command, *options], cwd=root, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # A campaign tries mutants of a fast kind in chunks of 250.
    first = campaign("--count", "250")
    seed = first.partition(",")[0]
    assert "| all | 250 |" in first
    second = campaign("--count", "251")
    assert second.startswith(f"{seed}, 250 mutants so far")
    assert "| all | 500 |" in second
