"""Cases are assigned to the workers of a fleet, and those of a lost worker to others.

The tested code is in `dmlconf/fleet/assignments.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.fleet.assignments import Assignments
from dmlconf.resources import cases_directory

PLAN = list(load_suite([cases_directory() / "gather"]).plan())[:40]


def identifiers(cases: Sequence[PlannedCase]) -> list[str]:
    return [case.identifier for case in cases]


def test_each_case_is_given_once_in_batches_that_grow_while_they_are_short() -> None:
    assignments = Assignments(PLAN)
    sizes: list[int] = []
    given: list[str] = []
    while batch := assignments.batch("one"):
        sizes.append(len(batch))
        given += identifiers(batch)
        assignments.done("one", 0.1)
    assert sizes == [1, 2, 4, 8, 16, 9]
    assert given == identifiers(PLAN)
    assert assignments.unfinished == 0


def test_batches_shrink_if_their_verdicts_would_be_late() -> None:
    assignments = Assignments(PLAN)
    for _ in range(3):
        assignments.batch("one")
        assignments.done("one", 0.1)
    assert len(assignments.batch("one")) == 8
    assignments.done("one", 3.0)
    assert len(assignments.batch("one")) == 4


def test_cases_of_a_lost_worker_go_to_others_one_at_a_time() -> None:
    assignments = Assignments(PLAN[:3])
    assignments.batch("one")
    assignments.done("one", 0.1)
    both = assignments.batch("one")
    assert len(both) == 2
    assert assignments.reassign("one", "lab-1") == []
    assert [assignments.batch("two"), assignments.batch("three")] == [both[:1], both[1:]]
    assert assignments.unfinished == 2


def test_a_case_at_which_three_workers_were_lost_is_not_assigned_again() -> None:
    assignments = Assignments(PLAN[:1])
    for worker in ("one", "two"):
        assert assignments.batch(worker) == PLAN[:1]
        assert assignments.reassign(worker, worker) == []
    assignments.batch("three")
    [loss] = assignments.reassign("three", "three")
    assert (loss.case, loss.workers) == (PLAN[0], ("one", "two", "three"))
    assert assignments.unfinished == 0
    assert assignments.batch("four") == []


def test_a_case_that_is_given_back_before_it_begins_is_assigned_again() -> None:
    assignments = Assignments(PLAN[:1])
    for _ in range(5):
        assignments.batch("one")
        assignments.give_back("one")
    assert assignments.batch("two") == PLAN[:1]
