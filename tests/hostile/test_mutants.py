"""A sample of the mutants; `python -m tests.hostile mutants --count N` tries more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hostile.subjects import SUBJECTS
from tests.hostile.trial import trial

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are watched by way of /proc"),
]

SAMPLE = 400
PLUGINS = 60
"""Each starts worker processes, which takes a hundred times as long as reading a file."""


@pytest.mark.parametrize("kind", SUBJECTS)
def test_no_mutant_brings_dmlconf_down(tmp_path: Path, kind: str) -> None:
    assert (
        "\n".join(map(str, trial(kind, tmp_path, 1, PLUGINS if kind == "plugin" else SAMPLE))) == ""
    )


@pytest.mark.parametrize(
    ("canary", "problem"),
    [
        ("works on", "more than 1 seconds of work"),
        ("takes memory", "MiB of memory"),
        ("dies", "the process ended, -6"),
        ("raises", "ZeroDivisionError: on purpose"),
    ],
)
def test_a_broken_promise_is_noticed_and_the_next_seed_is_tried(
    tmp_path: Path, canary: str, problem: str
) -> None:
    seconds = 1 if canary == "works on" else 60
    findings = list(trial(canary, tmp_path, 7, 2, most_seconds=seconds))
    assert [finding.seed for finding in findings] == [7, 8]
    assert all(problem in finding.problem for finding in findings)


def test_a_seed_makes_the_same_mutant_again(tmp_path: Path) -> None:
    from random import Random

    for kind, subject in SUBJECTS.items():
        first, second = (subject.mutant(Random(f"{kind}:5")).content for _ in range(2))
        assert first == second
