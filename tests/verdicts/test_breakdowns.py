"""Breakdowns of worker processes for which no case got the blame are found in a log.

The tested code is in `dmlconf/verdicts/breakdowns.py`.
"""

from __future__ import annotations

from dmlconf.verdicts.breakdowns import unexplained_breakdowns
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    LostProcess,
    ReasonKind,
    Status,
    Verdict,
)

CRASH, HANG = ReasonKind.CRASH, ReasonKind.HANG


def lost_process(
    process: int,
    sequence: int,
    together: int,
    *,
    kind: ReasonKind = CRASH,
    blamed: bool = False,
) -> LostProcess:
    """Return how case `sequence` of a process lost it, when `together` cases were waiting."""
    return LostProcess(kind, "its process died", process, sequence, together, blamed)


def verdict(case: str, *processes: LostProcess, worker: str | None = None) -> Verdict:
    """Return a pass of a case that earlier ran in these processes, which broke down."""
    execution = Execution(worker=worker, process=9, sequence=1, lost_processes=processes)
    return Verdict(Identity(case, "TILE", ()), Judgement(Status.PASSED), execution)


def test_breakdown_is_unexplained_if_all_its_cases_passed_later() -> None:
    [found] = unexplained_breakdowns(
        [verdict("b", lost_process(1, 8, 2)), verdict("a", lost_process(1, 7, 2)), verdict("other")]
    )
    assert (found.process, found.sequence, found.cases) == (1, 7, ("a", "b"))
    assert (found.kind, found.message) == (CRASH, "its process died")


def test_blamed_case_explains_its_earlier_breakdowns() -> None:
    guilty = verdict(
        "a", lost_process(1, 7, 2), lost_process(2, 3, 1), lost_process(3, 1, 1, blamed=True)
    )
    assert unexplained_breakdowns([guilty, verdict("b", lost_process(1, 8, 2))]) == []


def test_breakdown_with_fewer_waiting_cases_is_reported() -> None:
    cases = [
        verdict("a", lost_process(1, 7, 2), lost_process(2, 3, 1)),
        verdict("b", lost_process(1, 8, 2)),
    ]
    [found] = unexplained_breakdowns(cases)
    assert (found.process, found.sequence, found.cases) == (2, 3, ("a",))


def test_hang_is_unexplained_only_with_one_waiting_case() -> None:
    slow = [verdict(case, lost_process(1, at, 2, kind=HANG)) for at, case in enumerate("ab", 1)]
    assert unexplained_breakdowns(slow) == []
    [found] = unexplained_breakdowns([verdict("a", lost_process(1, 1, 1, kind=HANG))])
    assert found.kind is HANG


def test_processes_of_different_workers_are_told_apart() -> None:
    cases = [verdict(name, lost_process(1, 4, 1), worker=name) for name in ("a", "b")]
    assert [each.worker for each in unexplained_breakdowns(cases)] == ["a", "b"]
