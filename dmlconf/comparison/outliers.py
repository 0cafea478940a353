"""Find the outliers of several runs of the same cases: the one run whose result differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = ["FEWEST_RUNS", "Outlier", "outliers"]

FEWEST_RUNS = 3
"""Of two runs that differ, neither stands alone."""

_CONCLUSIVE = (Status.PASSED, Status.FAILED, Status.BROKEN, Status.STALE)
"""Statuses of cases whose results were judged; others say nothing about who is right."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """A case in which one run's result differs from those of all others, which agree.

    Attributes:
        case: its identifier.
        operator: its operator.
        run: the index of the run that stands alone, from 0.
        verdicts: the verdicts on the case, in the order of the runs.
    """

    case: str
    operator: str
    run: int
    verdicts: tuple[Verdict, ...]

    @property
    def fails(self) -> bool:
        """Whether the run that stands alone fails; otherwise it alone passes."""
        return self.verdicts[self.run].status.fails_run


def outliers(runs: Sequence[RunLog]) -> list[Outlier]:
    """Return the cases in which one run alone fails, or alone passes.

    A case counts if at least three runs judged it, and all of these but one agree.

    Args:
        runs: the runs, in any order; a run that did not judge a case does not count for it.
    """
    by_case: list[Mapping[str, Verdict]] = [{v.case: v for v in run.verdicts} for run in runs]
    found = []
    for case in dict.fromkeys(verdict.case for run in runs for verdict in run.verdicts):
        verdicts = [known.get(case) for known in by_case]
        judged = [
            (index, verdict)
            for index, verdict in enumerate(verdicts)
            if verdict is not None and verdict.status in _CONCLUSIVE
        ]
        if len(judged) < FEWEST_RUNS:
            continue
        failing = [index for index, verdict in judged if verdict.status.fails_run]
        passing = [index for index, verdict in judged if not verdict.status.fails_run]
        single = next((indices for indices in (failing, passing) if len(indices) == 1), None)
        if single is None:
            continue
        known = tuple(verdict for verdict in verdicts if verdict is not None)
        if len(known) == len(runs):
            found.append(Outlier(case, known[0].operator, single[0], known))
    return found
