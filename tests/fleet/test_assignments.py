"""Cases are assigned to the workers of a fleet, and those of a lost worker to others.

The tested code is in `dmlconf/fleet/assignments.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.fleet.assignments import MOST_LOSSES, Assignments
from dmlconf.resources import cases_directory

QUICK, LATE = 0.1, 3.0
"""Seconds for a batch: the next one is larger after QUICK, and smaller after LATE."""

PLAN = list(load_suite([cases_directory() / "gather"]).plan())[:40]


def identifiers(cases: Sequence[PlannedCase]) -> list[str]:
    return [case.identifier for case in cases]


def test_each_case_is_given_once_in_doubling_batches() -> None:
    assignments = Assignments(PLAN)
    sizes: list[int] = []
    given: list[str] = []
    while batch := assignments.batch("one"):
        sizes.append(len(batch))
        given += identifiers(batch)
        assignments.done("one", QUICK)
    assert sizes == [1, 2, 4, 8, 16, 9]  # The last batch has the rest of 40 cases.
    assert given == identifiers(PLAN)
    assert assignments.unfinished == 0


def test_batch_after_a_late_one_is_half_as_large() -> None:
    assignments = Assignments(PLAN)
    for _ in range(3):
        assignments.batch("one")
        assignments.done("one", QUICK)
    assert len(assignments.batch("one")) == 8
    assignments.done("one", LATE)
    assert len(assignments.batch("one")) == 4


def test_cases_of_a_lost_worker_are_reassigned_singly() -> None:
    assignments = Assignments(PLAN[:3])
    assignments.batch("one")
    assignments.done("one", QUICK)
    both = assignments.batch("one")
    assert len(both) == 2
    assert assignments.reassign("one", "lab-1") == []
    assert [assignments.batch("two"), assignments.batch("three")] == [both[:1], both[1:]]
    assert assignments.unfinished == 2


def test_case_of_three_lost_workers_is_not_reassigned() -> None:
    assignments = Assignments(PLAN[:1])
    for worker in ("one", "two"):
        assert assignments.batch(worker) == PLAN[:1]
        assert assignments.reassign(worker, worker) == []
    assignments.batch("three")
    [loss] = assignments.reassign("three", "three")
    assert (loss.case, loss.workers) == (PLAN[0], ("one", "two", "three"))
    assert assignments.unfinished == 0
    assert assignments.batch("four") == []


def test_case_given_back_is_always_assigned_again() -> None:
    assignments = Assignments(PLAN[:1])
    for _ in range(MOST_LOSSES + 1):
        assignments.batch("one")
        assignments.give_back("one")
    assert assignments.batch("two") == PLAN[:1]
