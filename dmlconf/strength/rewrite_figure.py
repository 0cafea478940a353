"""The strength figure "by rewrite": whether the cases of rewrites prove what they are for.

The graph of a case must pass. The rewritten graph must pass if the case meets all conditions of the
rewrite, and fail if the case breaks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.loader import case_problems, valid_case
from dmlconf.cases.loading.rewrites import CaseRewrite, case_rewrite, rewritten
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.judging.judge import Against, Recorded
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.judging import CaseJudge
from dmlconf.verdicts.verdict import Status

__all__ = [
    "RIGHT",
    "RewriteFigure",
    "measure_rewrites",
]

RIGHT: Final = ""
"""Stands for the broken condition in keys of a `RewriteFigure`, for cases that break none."""


@dataclass(slots=True)
class RewriteFigure:
    """How many cases of rewrites were tried, and which of them prove nothing.

    Attributes:
        cases: how many cases were tried, by rewrite and broken condition or `RIGHT`.
        unproven: the cases that prove nothing, each with the reason.
    """

    cases: dict[tuple[str, str], int] = field(default_factory=dict)
    unproven: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, later: RewriteFigure) -> None:
        """Add the figure of further cases."""
        for key, count in later.cases.items():
            self.cases[key] = self.cases.get(key, 0) + count
        for key, lines in later.unproven.items():
            self.unproven.setdefault(key, []).extend(lines)

    def proves(self, rewrite: str, condition: str) -> bool:
        """Return whether there are cases of the rewrite and condition, and none is `unproven`."""
        key = rewrite, condition
        return key in self.cases and not self.unproven.get(key)


def measure_rewrites(
    plan: Iterable[PlannedCase], against: Against, advance: Callable[[], None] = lambda: None
) -> RewriteFigure:
    """Return the figure of the cases of rewrites in a plan.

    Raises:
        InvalidFilesError: a case or its rewritten graph cannot be built, or a case is not valid.
    """
    figure = RewriteFigure()
    for planned in plan:
        try:
            rewrite = case_rewrite(planned.template)
            if rewrite is not None:
                _measure(figure, planned, rewrite, against)
        except CaseError as error:
            raise InvalidFilesError(case_problems(planned.template, error)) from error
        advance()
    return figure


def _measure(
    figure: RewriteFigure, planned: PlannedCase, rewrite: CaseRewrite, against: Against
) -> None:
    key = rewrite.name, rewrite.breaks or RIGHT
    figure.cases[key] = figure.cases.get(key, 0) + 1
    problem = _problem(planned, rewrite, against)
    if problem is not None:
        figure.unproven.setdefault(key, []).append(f"{planned.identifier}: {problem}")


def _problem(planned: PlannedCase, rewrite: CaseRewrite, against: Against) -> str | None:
    """Return why a case proves nothing; None if it proves what it is for."""
    case, mutant = valid_case(planned).with_inputs(), rewritten(planned).with_inputs()
    with np.errstate(all="ignore"):
        right, wrong = evaluate(case), evaluate(mutant)

    def expected(asked: Case) -> Outcome | Recorded | None:
        return against(asked) or Outputs(right)

    judged = CaseJudge(case, expected)
    if judged(right) is not Status.PASSED:
        return "the graph itself fails"
    try:
        passes = judged({name: wrong[name] for name in right}) is Status.PASSED
    except KeyError as error:
        return f"the rewritten graph has no output {error.args[0]}"
    if rewrite.breaks is None:
        return None if passes else "the rewritten graph fails, although the rewrite is right"
    return "the rewritten graph passes" if passes else None
