"""Find breakdowns of worker processes that are blamed on no case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dmlconf.verdicts.choosing import where
from dmlconf.verdicts.record import ALWAYS
from dmlconf.verdicts.verdict import Execution, LostProcess, ReasonKind, Verdict

__all__ = ["UnexplainedBreakdown", "unexplained_breakdowns"]


@dataclass(frozen=True, slots=True)
class UnexplainedBreakdown:
    """A breakdown of a worker process that is blamed on no case.

    Attributes:
        kind: how the process broke down.
        process: the number of the process, from 1.
        sequence: the number of `cases[0]` among all cases of the process, from 1.
        cases: the cases that had no outcome yet, in their order.
        worker: the fleet's worker that had the process; None for the run's own machine.
    """

    kind: ReasonKind
    message: str
    process: int
    sequence: int
    cases: tuple[str, ...] = field(metadata=ALWAYS)
    worker: str | None = None


def unexplained_breakdowns(verdicts: Iterable[Verdict]) -> list[UnexplainedBreakdown]:
    """Return the breakdowns that no case explains, in the order of processes.

    The suspects of a breakdown are the cases that had no outcome yet. A breakdown is left out if a
    suspect was blamed for any breakdown. Of the others, a breakdown is left out if a suspect is
    also a suspect of one with fewer suspects. A hang with several suspects is left out, too, since
    they may exceed the time limit only together.
    """
    met: dict[tuple[str | None, int], list[tuple[LostProcess, str]]] = {}
    blamed: set[str] = set()
    for verdict in where(verdicts, Execution, lambda execution: bool(execution.lost_processes)):
        for lost in verdict.execution.lost_processes:
            met.setdefault((verdict.execution.worker, lost.process), []).append(
                (lost, verdict.case)
            )
            if lost.blamed:
                blamed.add(verdict.case)
    left = {
        process: sorted(tries, key=lambda each: each[0].sequence)
        for process, tries in met.items()
        if blamed.isdisjoint(case for _, case in tries)
    }
    fewest: dict[str, int] = {}
    for tries in left.values():
        for lost, case in tries:
            fewest[case] = min(lost.together, fewest.get(case, lost.together))
    return [
        UnexplainedBreakdown(
            tries[0][0].kind,
            tries[0][0].message,
            process,
            tries[0][0].sequence,
            tuple(case for _, case in tries),
            worker,
        )
        for (worker, process), tries in sorted(left.items(), key=lambda each: each[0][1])
        if all(fewest[case] == lost.together for lost, case in tries)
        and (tries[0][0].kind is not ReasonKind.HANG or tries[0][0].together == 1)
    ]
