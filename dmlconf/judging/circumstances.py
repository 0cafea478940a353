"""Judge dispatches under circumstances, and decide whether a circumstance is to blame.

A dispatch with the case's own inputs is judged by what the case expects. It is not judged again if
it has no fault and gives the bits of the plain run; all NaNs count as equal. A dispatch with other
inputs is judged by the source of expected outcomes, but only if it has a fault or some data of the
case has a seed or a shift (`is_judged`).

A circumstance is to blame for a wrong dispatch only if a plain run with the same inputs is right or
excused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dmlconf.backends.circumstances import (
    Circumstance,
    Exercise,
    Exercised,
    Exercises,
    Inapplicable,
    UnderCircumstance,
)
from dmlconf.backends.protocol import Breakdown, Outcome, Outputs
from dmlconf.cases.model import Case
from dmlconf.cases.variation import is_judged, varied
from dmlconf.judging.judge import JudgeOne
from dmlconf.judging.needs_run import Steps
from dmlconf.tensors.sample import elements_digest
from dmlconf.verdicts.verdict import Reason, Status, Verdict

__all__ = [
    "INAPPLICABLE",
    "judge_circumstances",
    "run_under",
]

INAPPLICABLE: Final = "not applicable"
"""The log's word for a circumstance that does not apply to a case."""


@dataclass(frozen=True, slots=True)
class _Concern:
    """A dispatch, or a whole run under a circumstance, that needs a verdict of its own.

    Attributes:
        variation: which inputs the dispatch had, as in `varied`; 0 for the case's own.
        in_place: the outputs that shared an input's buffer; None if they are the case's own.
    """

    verdict: Verdict
    outcome: Outcome
    variation: int = 0
    in_place: Mapping[str, str] | None = None

    def dispatched(self, case: Case) -> Case:
        """Return the case with the inputs and buffers of the dispatch."""
        other = varied(case, self.variation)
        return other if self.in_place is None else replace(other, in_place=self.in_place)


def judge_circumstances(
    case: Case,
    verdict: Verdict,
    exercises: Mapping[Circumstance, UnderCircumstance],
    judge: JudgeOne,
    excuse: Callable[[Case, Outcome, Verdict], Verdict],
    by_nodes: Callable[[Case, Outcome, Verdict], Steps[Verdict]] | None = None,
) -> Steps[Verdict]:
    """Return the verdict on a case that passed its plain run and ran under circumstances.

    Args:
        excuse: returns the given verdict, or another one if something excuses the failure.
        by_nodes: returns the given verdict, or another one if a graph's nodes show that its values
            are right.
    """
    results: dict[str, str] = {}
    known: dict[tuple[int, tuple[tuple[str, str], ...]], Verdict] = {}
    for circumstance, result in exercises.items():
        if isinstance(result, Inapplicable):
            results[circumstance] = INAPPLICABLE
            continue
        concern = _concern(case, verdict, result, judge, known)
        if concern is None:
            results[circumstance] = Status.PASSED
            continue
        named = concern.verdict.judged(circumstance=str(circumstance))
        other = varied(case, concern.variation)
        settled = excuse(concern.dispatched(case), concern.outcome, named)
        if settled.status.fails_run and concern.variation:
            plain: Outcome = yield other
            judged = judge(other, plain)
            if by_nodes is not None:
                judged = yield from by_nodes(other, plain, judged)
            again = excuse(other, plain, judged)
            if again.status.fails_run:
                return _with_other_inputs(verdict, again, concern.variation, results)
            if judged.status is Status.PASSED and _same_outputs(plain, concern.outcome):
                settled = judged
        results[circumstance] = settled.status
        if settled.status.fails_run:
            return _blamed(verdict, settled, circumstance, concern.variation, results)
    return verdict.judged(circumstances=results)


def _concern(
    case: Case,
    plain: Verdict,
    result: Exercised | Outcome,
    judge: JudgeOne,
    known: dict[tuple[int, tuple[tuple[str, str], ...]], Verdict],
) -> _Concern | None:
    if not isinstance(result, Exercised):
        return _Concern(judge(case, result), result)
    if result.faults:
        arrays = next((each.arrays for each in result.dispatches if not each.variation), {})
        outcome = Outputs(arrays, faults=result.faults)
        return _Concern(judge(case, outcome), outcome)
    for each in result.dispatches:
        if each.variation and not is_judged(case) and not each.faults:
            continue
        outcome = Outputs(each.arrays, faults=each.faults)
        digests = {name: elements_digest(array)[:16] for name, array in each.arrays.items()}
        if not each.variation and not each.faults and digests == plain.execution.output_digests:
            continue
        key = each.variation, tuple(digests.items())
        if each.faults or key not in known:
            known[key] = judge(varied(case, each.variation), outcome)
        if known[key].status.fails_run:
            return _Concern(known[key], outcome, each.variation, each.in_place)
    return None


def _same_outputs(one: Outcome, other: Outcome) -> bool:
    """Return whether both outcomes are outputs without faults and with equal bits or NaNs."""
    if not isinstance(one, Outputs) or not isinstance(other, Outputs):
        return False
    digests = [
        {name: elements_digest(array) for name, array in each.arrays.items()}
        for each in (one, other)
    ]
    return digests[0] == digests[1] and not one.faults and not other.faults


def _blamed(
    plain: Verdict,
    wrong: Verdict,
    circumstance: Circumstance,
    variation: int,
    results: Mapping[str, str],
) -> Verdict:
    assert wrong.reason is not None
    inputs = f" (inputs {variation})" if variation else ""
    message = f"only when {circumstance}{inputs}: {wrong.reason.message}"
    return plain.judged(
        status=wrong.status,
        reason=replace(wrong.reason, message=message),
        figures=wrong.figures or plain.figures,
        circumstance=str(circumstance),
        circumstances=dict(results),
    )


def _with_other_inputs(
    plain: Verdict, wrong: Verdict, variation: int, results: Mapping[str, str]
) -> Verdict:
    """Return a failing verdict that blames no circumstance, since a plain run is wrong too."""
    assert wrong.reason is not None
    message = f"with other inputs ({variation}), plainly too: {wrong.reason.message}"
    reason: Reason = replace(wrong.reason, message=message)
    return plain.judged(
        status=wrong.status, reason=reason, figures=wrong.figures, circumstances=dict(results)
    )


def run_under(case: Case, circumstances: Iterable[Circumstance]) -> Steps[Exercises | Outcome]:
    """Yield a case, and then the case under each circumstance, one at a time.

    After a breakdown, no further circumstance is tried. If the plain run gives no outputs, its
    outcome is returned.
    """
    plain: Outcome = yield case
    if not isinstance(plain, Outputs):
        return plain
    under: dict[Circumstance, UnderCircumstance] = {}
    for circumstance in circumstances:
        result = yield Exercise(case, (circumstance,))
        under[circumstance] = (
            result if isinstance(result, Breakdown) else result.under[circumstance]
        )
        if isinstance(result, Breakdown):
            break
    return Exercises(plain, under)
