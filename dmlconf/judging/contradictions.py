"""Find expected values that the rules do not permit around what the reference computes.

Expected outputs that contradict each other are found too. Such a case fails on every backend,
unless it disputes the reference. Without this check, a backend that returns the same wrong values
would pass. `CaseAllowances.permitted` remembers expected values that are permitted, so that they
are not compared again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dmlconf.backends.recording.samples import Pair, paired
from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import PrecisionRule
from dmlconf.judging.disagreement import disagreements
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance
from dmlconf.precision.allowed import Ends, allowed_at
from dmlconf.precision.compare import Comparison, compare
from dmlconf.reference.evaluation import MissingFunction
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample

__all__ = ["Contradiction", "contradiction_of", "contradictions_of", "spread_text"]

_FEWEST_DIGITS: Final = 7
_MOST_DIGITS: Final = 17
"""The significant digits of numbers in a message: 7, about the precision of FLOAT32, if they show
the difference. 17 tell any two values of FLOAT64 apart."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An output whose expected values are wrong by the reference or by other expected outputs.

    Attributes:
        message: one sentence about the first element outside the rule or, if there is none, about
            the mean of squared errors or the outputs that contradict this one.
        differences: for each of the first elements outside the rule, `tensor`, `coordinates`,
            `expected` (what the case expects) and `allowed` (what the rules permit).
    """

    output: str
    message: str
    differences: tuple[Mapping[str, Any], ...]


def contradictions_of(
    case: Case,
    outputs: Mapping[str, Array | Sample],
    allowances: CaseAllowances,
    beside: Mapping[str, Array | Sample] = MappingProxyType({}),
) -> Iterator[Contradiction]:
    """Yield how expected outputs contradict the reference or, if none does, each other.

    Args:
        outputs: the stated or recorded values, of the outputs' data types and sizes.
        beside: other expected outputs of the case, which are known to be right by themselves.
    """
    of_reference = [contradiction_of(case, *output, allowances) for output in outputs.items()]
    yield from filter(None, of_reference)
    if not any(of_reference):
        for each in disagreements(case, {**beside, **outputs}):
            message = f"expected values contradict each other: {each.message}"
            yield Contradiction(each.output, message, tuple(map(_of_expected, each.differences)))


def _of_expected(difference: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a difference between expected outputs as `Contradiction.differences` has them."""
    return {
        "tensor": difference["tensor"],
        "coordinates": difference["coordinates"],
        "expected": difference["actual"],
        "allowed": difference["allowed"],
    }


def contradiction_of(
    case: Case, output: str, expected: Array | Sample, allowances: CaseAllowances
) -> Contradiction | None:
    """Return how the expected values of an output contradict the reference; None if they do not.

    A reference that cannot compute the case contradicts nothing.

    Args:
        expected: the stated or recorded values, with the output's data type and sizes.
    """
    if allowances.permitted.get(output) is expected:
        return None
    allowance = allowances.of(output)
    try:
        right = allowance.right
    except (MissingFunction, MemoryError):
        return None
    pair = paired(expected, right)
    permitted = pair.allowance(allowance)
    for rule in filter(None, (case.rule(output), case.narrower_rule(output))):
        comparison = pair.located(compare(pair.actual, pair.expected, rule, permitted))
        if not comparison.passed:
            return _contradiction(output, pair, comparison, rule, permitted)
    allowances.permitted[output] = expected
    return None


def _contradiction(
    output: str, pair: Pair, comparison: Comparison, rule: PrecisionRule, allowance: Allowance
) -> Contradiction:
    indices = [pair.index(difference.coordinates) for difference in comparison.first]
    allowed = allowed_at(pair.expected, rule, allowance, indices) if indices else []
    differences = tuple(
        {
            "tensor": output,
            "coordinates": list(difference.coordinates),
            "expected": difference.actual,
            "allowed": [list(both) for both in ends],
        }
        for difference, ends in zip(comparison.first, allowed, strict=True)
    )
    return Contradiction(output, _message(output, comparison, allowed), differences)


def spread_text(output: str, comparison: Comparison) -> str:
    """Return the message for an output whose errors are each small enough, but not their mean."""
    return (
        f"each element of {output} is near enough, but the mean of their squared errors is "
        f"{comparison.spread:,.1f} times what rounding can explain"
    )


def _message(output: str, comparison: Comparison, allowed: Sequence[Sequence[Ends]]) -> str:
    subject = "the expected value and the reference contradict each other"
    if not comparison.first:
        return f"{subject}: {spread_text(output, comparison)}"
    first = comparison.first[0]
    value, intervals = _spelled(first.actual, allowed[0])
    where = f"at {list(first.coordinates)} of {output}"
    more = comparison.differing - 1
    others = f" (and {more:,} more)" if more else ""
    if intervals == [f"[{value}, {value}]"]:  # No digits show the difference.
        return f"{subject}: {value} is not the same bits as {first.expected!r}, {where}{others}"
    return f"{subject}: {value} is not {_within(intervals)}, {where}{others}"


def _within(intervals: Sequence[str]) -> str:
    """Return the intervals as text: `17.5`, `within [17, 18]` or `within [1, 2] or [4, 5]`."""
    if len(intervals) == 1:
        low, _, high = intervals[0][1:-1].partition(", ")
        if low == high:
            return low
    return f"within {' or '.join(intervals)}"


def _spelled(value: float | int, intervals: Sequence[Ends]) -> tuple[str, list[str]]:
    """Return a value and intervals as text, with enough digits to show the value outside."""
    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS + 1):
        text = _number(value, digits)
        spelled = [f"[{_number(low, digits)}, {_number(high, digits)}]" for low, high in intervals]
        if not any(
            float(_number(low, digits)) <= float(text) <= float(_number(high, digits))
            for low, high in intervals
        ):
            break
    return text, spelled


def _number(value: float | int, digits: int) -> str:
    return str(value) if isinstance(value, int) else f"{np.float64(value):.{digits}g}"
