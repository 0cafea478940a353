"""Find the cases in which one of several runs alone fails, or alone passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Verdict

__all__ = ["FEWEST_RUNS", "Outlier", "outliers"]

FEWEST_RUNS = 3
"""The fewest runs among which one can stand alone: of two that differ, either may be wrong."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """A case in which, of the runs that judged it, one alone fails or alone passes.

    Verdicts such as `unsupported` and `waived` judge nothing.

    Attributes:
        run: the index of the run that stands alone, from 0.
        verdicts: the verdicts on the case, in the order of the runs.
    """

    case: str
    operator: str
    run: int
    verdicts: tuple[Verdict, ...]

    @property
    def fails(self) -> bool:
        """Whether the run that stands alone fails the case; if not, it alone passes the case."""
        return self.verdicts[self.run].status.fails_run


def outliers(runs: Sequence[RunLog]) -> list[Outlier]:
    """Return the cases in which one run alone fails, or alone passes.

    Every run must have a verdict on the case. At least `FEWEST_RUNS` verdicts must judge the case.
    Exactly one of these must fail the run, or all but one.
    """
    by_case: list[Mapping[str, Verdict]] = [{v.case: v for v in run.verdicts} for run in runs]
    found = []
    for case in dict.fromkeys(verdict.case for run in runs for verdict in run.verdicts):
        verdicts = [known.get(case) for known in by_case]
        judged = [
            (index, verdict)
            for index, verdict in enumerate(verdicts)
            if verdict is not None and verdict.status.traits.judged
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
