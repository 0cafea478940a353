"""Allowances: what rules permit besides expected values.

`dmlconf.permitted.allowance` makes the allowances of a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

import numpy as np

from dmlconf.catalogue.precision import RuleKind
from dmlconf.tensors.datatypes import Array

__all__ = ["Allowance", "Interval", "SumErrors", "elements_at", "permitted_intervals"]

Interval = tuple[Array, Array]
"""The least and the greatest right value of each element; both may be NaN."""

MOST_TOGETHER: Final = 1 << 15
"""The most elements of several arrays that are stacked, so that the stack stays in the cache."""

_NEARLY: Final = 1 - 2.0**-10
"""The share of the largest number from which on a sum may overflow by rounding."""

_Part = TypeVar("_Part")

_Lazy: TypeAlias = _Part | Callable[[], _Part]
"""A part of an allowance, or the function that computes it."""


@dataclass(frozen=True, slots=True)
class SumErrors:
    """The scale of the errors of an output that consists of sums.

    The section "The error scale" of docs/bounds.md describes it. For the sum 1 + 2 - 3 in FLOAT32,
    `sums` is 6, and each rounding has an error of at most 6 * 2^-24.

    The arrays in `sums`, `others`, `spans` and `by_sign` have the output's sizes; NumPy can
    broadcast the other arrays to these sizes.

    Attributes:
        sums: the sum of the magnitudes of the values that a kernel adds up.
        stored: the sum of `|v * d|` over the values v that a kernel stores in FLOAT16 between two
            steps, with the derivative d of the output with respect to v. The stores lose at most
            2^-10 of this sum. None if nothing is stored.
        deviation: the root of the sum of the squares of `v * d`, for errors whose signs differ.
            None if it equals `stored`.
        quantum: a power of two that divides all terms, so that sums of up to 2^24 quanta are exact
            in FLOAT32 in any order. 0 if there is none, or if no rule needs one.
        overflows: for each element, whether an intermediate may overflow, so that infinities and
            NaN are also right. Elements whose `sums` exceed FLOAT32 need not be marked. None marks
            no element.
        others: other outputs, in the output's data type, with elements as right as the reference's.
        terms_vary: whether each sum is known to have many terms whose roundings are independent.
        sums_shared: whether many elements contain the same sum or factor, and so the same error.
        spans: FLOAT64 intervals. Before the output is stored, all numbers in them are as right as
            the reference's. NaN ends permit nothing.
        growth: the factor by which later steps multiply a sum, which `sums` includes: 300 for
            300 * sum(x). None for 1.
        terms_repeat: whether a sum may have many equal terms, whose errors may have one sign.
        by_sign: FLOAT64 bounds of the sum of the negative terms and of the sum of the positive
            terms, before later steps multiply them. An overflow gives infinity only if the positive
            terms exceed the largest number, negative infinity only if the negative terms do, and
            NaN only if both do. Beside an infinite term, the opposite infinity is wrong. None if
            the bounds are not known, or if nothing overflows.
    """

    sums: Array
    stored: Array | None = None
    deviation: Array | None = None
    quantum: float = 0.0
    overflows: Array | None = None
    others: tuple[Array, ...] = ()
    terms_vary: bool = False
    sums_shared: bool = False
    spans: tuple[Interval, ...] = ()
    growth: Array | None = None
    terms_repeat: bool = False
    by_sign: Interval | None = None

    def at(self, indices: Array | slice) -> SumErrors:
        """Return the errors of some elements, flat, by their indices in row-major order."""

        def part(array: Array | None) -> Array | None:
            if array is None:
                return None
            return elements_at(np.broadcast_to(array, self.sums.shape), indices)

        return SumErrors(
            elements_at(self.sums, indices),
            part(self.stored),
            part(self.deviation),
            self.quantum,
            part(self.overflows),
            tuple(elements_at(other, indices) for other in self.others),
            self.terms_vary,
            self.sums_shared,
            tuple(
                (elements_at(least, indices), elements_at(most, indices))
                for least, most in self.spans
            ),
            part(self.growth),
            self.terms_repeat,
            self.by_sign
            and (elements_at(self.by_sign[0], indices), elements_at(self.by_sign[1], indices)),
        )

    def overflow_results(self, largest: float) -> tuple[Array, Array, Array]:
        """Return where an overflow may give infinity, negative infinity and NaN.

        What is not marked in `overflows`, and does not exceed `largest` in `sums`, counts as well.

        Args:
            largest: the largest number of the type of the sums.
        """
        if self.by_sign is None:
            anywhere = np.ones(self.sums.shape, bool)
            return anywhere, anywhere, anywhere
        least, greatest = self.by_sign
        nearly = largest * _NEARLY
        up, down = ~(greatest < nearly), ~(least > -nearly)
        # Beside an infinite term, an overflow to the opposite infinity makes NaN.
        infinite = ~np.isfinite(self.sums)
        opposite = infinite & (greatest < np.inf), infinite & (least > -np.inf)
        return up & ~opposite[0], down & ~opposite[1], up & down

    def stacked_spans(self) -> Iterator[Interval]:
        """Yield the spans stacked along a new first axis, as many at once as fit into the cache."""
        count = max(1, MOST_TOGETHER // max(1, self.sums.size))
        for start in range(0, len(self.spans), count):
            least, greatest = zip(*self.spans[start : start + count], strict=True)
            yield np.stack(least), np.stack(greatest)


class Allowance:
    """What is permitted for one output of one case besides the expected values.

    Each part may be given as a value, or as a function that is called when the part is first read.

    Attributes:
        half_precision: whether the backend may compute FLOAT16 outputs in FLOAT16 throughout.
    """

    def __init__(
        self,
        *,
        right: _Lazy[Array | None] = None,
        errors: _Lazy[SumErrors | None] = None,
        interval: _Lazy[Interval | None] = None,
        candidates: _Lazy[Sequence[Interval]] = (),
        flushed: _Lazy[tuple[Array, Array] | None] = None,
        in_range: _Lazy[Array | None] = None,
        half_precision: bool = False,
    ) -> None:
        """Remember the parts; without any, only the expected values are permitted."""
        self.half_precision = half_precision
        self._right, self._errors, self._interval = right, errors, interval
        self._candidates, self._flushed, self._in_range = candidates, flushed, in_range

    @cached_property
    def right(self) -> Array:
        """What the reference computes, shaped like the output.

        Raises:
            LookupError: only the expected values are known.
        """
        right = _value(self._right)
        if right is None:
            raise LookupError("only the expected values are known")
        return right

    @cached_property
    def errors(self) -> SumErrors | None:
        """The error scale that the rule `accumulate` needs; None if it was not given."""
        return _value(self._errors)

    @cached_property
    def flat_errors(self) -> SumErrors | None:
        """The same as `errors`, with flat arrays."""
        return None if self.errors is None else self.errors.at(slice(None))

    @cached_property
    def interval(self) -> Interval | None:
        """The least and the greatest right values for the rule `interval`; None if not given."""
        return _value(self._interval)

    @cached_property
    def candidates(self) -> Sequence[Interval]:
        """Intervals for the rule `one of`; each right element lies in at least one of them.

        Empty if they were not given.
        """
        return _value(self._candidates)

    @cached_property
    def flushed(self) -> tuple[Array, Array] | None:
        """The right values, and the right values if subnormal operands count as zeros.

        None if no FLOAT32 operand is subnormal, or if they were not given.
        """
        return _value(self._flushed)

    @cached_property
    def in_range(self) -> Array | None:
        """The right values, with infinities, NaN and zeros that the range of FLOAT32 makes.

        None if there are none, or if they were not given.
        """
        return _value(self._in_range)

    def at(self, indices: Array) -> Allowance:
        """Return the allowance of some elements of the output, with flat arrays."""

        def both(ends: Interval) -> Interval:
            return elements_at(ends[0], indices), elements_at(ends[1], indices)

        def errors() -> SumErrors | None:
            return None if self.errors is None else self.errors.at(indices)

        def interval() -> Interval | None:
            return None if self.interval is None else both(self.interval)

        def flushed() -> tuple[Array, Array] | None:
            return None if self.flushed is None else both(self.flushed)

        def in_range() -> Array | None:
            return None if self.in_range is None else elements_at(self.in_range, indices)

        return Allowance(
            right=lambda: elements_at(self.right, indices),
            errors=errors,
            interval=interval,
            candidates=lambda: [both(ends) for ends in self.candidates],
            flushed=flushed,
            in_range=in_range,
            half_precision=self.half_precision,
        )


def _value(part: _Lazy[_Part]) -> _Part:
    return part() if callable(part) else part


def elements_at(array: Array, indices: Array | slice) -> Array:
    """Return some elements of an array, by their indices in row-major order."""
    elements: Array = np.ascontiguousarray(array).ravel()[indices]
    return elements


def permitted_intervals(kind: RuleKind, allowance: Allowance) -> tuple[Interval, ...]:
    """Return the intervals of a rule of the kind `interval` or `one of`.

    Each right element lies in at least one of them. Empty for other kinds of rules, and if the
    allowance lacks intervals.
    """
    if kind == RuleKind.ONE_OF:
        return tuple(allowance.candidates)
    interval = allowance.interval if kind == RuleKind.INTERVAL else None
    return () if interval is None else (interval,)
