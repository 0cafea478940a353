"""The figure of rewrites: for each of the catalogue, what its cases prove.

A case proves that a rewrite is right if the rewritten graph gives what the case permits. A near
miss proves a condition if the graph itself passes and the rewritten one, the mutant, fails. Both
are computed by the reference, with the data of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.errors import CaseError
from dmlconf.cases.loading.loader import case_problems, valid_case
from dmlconf.cases.loading.rewrites import CaseRewrite, case_rewrite, rewrites, rewritten
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.judging.judge import Against, Recorded
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.judging import CaseJudge
from dmlconf.strength.tallies import share
from dmlconf.verdicts.verdict import Status

__all__ = [
    "REWRITE_HEADINGS",
    "RewriteFigure",
    "measure_rewrites",
    "rewrite_data",
    "rewrite_lines",
    "rewrite_sentence",
    "rewrite_share",
    "rewrite_table",
]

REWRITE_HEADINGS: Final = ("Rewrite", "Kind", "Cases", "Right", "Conditions", "Proven")

_RIGHT: Final = ""
"""In place of the name of a condition: the cases in which a rewrite is right."""


@dataclass(slots=True)
class RewriteFigure:
    """What the cases of rewrites prove.

    Attributes:
        cases: how many cases were tried, by rewrite and condition; no condition where it is right.
        unproven: of these, the cases that prove nothing, with the reason.
    """

    cases: dict[tuple[str, str], int] = field(default_factory=dict)
    unproven: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, later: RewriteFigure) -> None:
        """Add what later cases prove."""
        for key, count in later.cases.items():
            self.cases[key] = self.cases.get(key, 0) + count
        for key, lines in later.unproven.items():
            self.unproven.setdefault(key, []).extend(lines)


def measure_rewrites(
    plan: Iterable[PlannedCase], against: Against, advance: Callable[[], None] = lambda: None
) -> RewriteFigure:
    """Return what the cases of rewrites among some cases prove.

    Args:
        plan: those without a rewrite do not count.
        against: gives the expected outcome of cases that state none.
        advance: is called after each case.

    Raises:
        InvalidFilesError: a case or its rewritten graph cannot be built.
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
    key = rewrite.name, rewrite.breaks or _RIGHT
    figure.cases[key] = figure.cases.get(key, 0) + 1
    fault = _fault(planned, rewrite, against)
    if fault is not None:
        figure.unproven.setdefault(key, []).append(f"{planned.identifier}: {fault}")


def _fault(planned: PlannedCase, rewrite: CaseRewrite, against: Against) -> str | None:
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


def _needed() -> Iterator[tuple[str, str]]:
    """Yield what is to be proven: that each rewrite is right somewhere, and each condition."""
    for name, rewrite in rewrites().items():
        yield name, _RIGHT
        for condition in rewrite.conditions:
            yield name, condition


def _proven(figure: RewriteFigure, key: tuple[str, str]) -> bool:
    return key in figure.cases and not figure.unproven.get(key)


def rewrite_share(figure: RewriteFigure) -> float:
    """Return the percentage of rewrites and conditions that every case of theirs proves."""
    needed = list(_needed())
    return share(sum(_proven(figure, key) for key in needed), len(needed))


def rewrite_sentence(figure: RewriteFigure) -> str:
    """Return the figure as one sentence."""
    needed = list(_needed())
    right = [key for key in needed if not key[1]]
    conditions = [key for key in needed if key[1]]
    return (
        f"by rewrite: {sum(_proven(figure, key) for key in right):,} of {len(right):,} rewrites "
        f"have a graph in which they are right, and "
        f"{sum(_proven(figure, key) for key in conditions):,} of {len(conditions):,} conditions a "
        f"graph that fails without them ({rewrite_share(figure):.2f}%), in "
        f"{sum(figure.cases.values()):,} graphs"
    )


def rewrite_table(figure: RewriteFigure) -> Iterator[tuple[str, ...]]:
    """Yield a row for each rewrite, as `REWRITE_HEADINGS` has its columns."""
    for name, rewrite in rewrites().items():
        keys = [(name, condition) for condition in (_RIGHT, *rewrite.conditions)]
        right, *conditions = (_proven(figure, key) for key in keys)
        yield (
            name,
            rewrite.kind,
            f"{sum(figure.cases.get(key, 0) for key in keys):,}",
            "yes" if right else "no",
            f"{len(conditions):,}",
            f"{sum(conditions):,}",
        )


def rewrite_lines(figure: RewriteFigure) -> Iterator[str]:
    """Yield a line for each case that proves nothing, and each part that has no case."""
    for key in _needed():
        name, condition = key
        what = f"{name}, without {condition}" if condition else f"{name}, where it is right"
        if key not in figure.cases:
            yield f"no case: {what}"
        yield from (f"proves nothing: {what}: {line}" for line in figure.unproven.get(key, ()))


def rewrite_data(figure: RewriteFigure) -> dict[str, Any]:
    """Return the figure for JSON."""
    return {
        "cases": sum(figure.cases.values()),
        "share": rewrite_share(figure),
        "rewrites": [_data(figure, name) for name in rewrites()],
    }


def _data(figure: RewriteFigure, name: str) -> Mapping[str, Any]:
    rewrite = rewrites()[name]

    def part(condition: str) -> dict[str, Any]:
        key = name, condition
        return {
            "cases": figure.cases.get(key, 0),
            "proven": _proven(figure, key),
            "unproven": figure.unproven.get(key, []),
        }

    return {
        "name": name,
        "kind": rewrite.kind,
        "right": part(_RIGHT),
        "conditions": {condition: part(condition) for condition in rewrite.conditions},
    }
