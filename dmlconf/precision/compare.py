"""Compare an output with the expected values under a precision rule.

`rules` computes what share of its limit each element uses, and `accumulation` does so for sums.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision import rules
from dmlconf.precision.accumulation import Accumulation
from dmlconf.precision.allowance import Allowance, Interval, permitted_intervals
from dmlconf.precision.ulp import UNORDERED, ulp_distance
from dmlconf.tensors.datatypes import Array

__all__ = ["MOST_DIFFERENCES", "Comparison", "Difference", "accumulation_of", "compare"]

MOST_DIFFERENCES = 5
"""The most differing elements that a comparison keeps."""

_LEAST_ELEMENTS: Final = 64
"""The least number of elements for which the mean of squared errors is judged."""

_MOST_SAMPLED: Final = 1 << 12
"""The most elements, from the beginning of an array, that decide whether its elements differ."""

_BLOCK: Final = 1 << 15
"""The most elements that are compared at once."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One element outside the rule.

    Attributes:
        coordinates: the element's index along each axis of the output.
    """

    coordinates: tuple[int, ...]
    expected: float | int
    actual: float | int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two arrays of one shape and type.

    Attributes:
        differing: how many elements are outside the rule.
        worst_ulp: the greatest distance in ULP; None for integers, infinite if one element of a
            pair is NaN and the other is not.
        worst_coordinates: the coordinates of the element that uses most of its limit or, if none
            uses any, has the greatest distance in ULP; None if all distances are 0.
        first: the first elements outside the rule in row-major order, at most `MOST_DIFFERENCES`.
        margin: the share of its limit that the worst element uses; above 1 if it is outside.
        spread: for `accumulate`, the share of its limit that the mean of squared errors uses; 0 if
            there are too few expected values, or too many equal ones. If an element is too far off
            and the rule has alternatives, such as flushed subnormals, its block of 2^15 elements
            counts as 0.
        histogram: the number of elements by their distance from the expected value in ULP. The key
            2 stands for 2 or 3 ULP, 4 for 4 to 7 ULP and so on; infinity for a NaN against a
            number. Empty for integers, and if all elements have the expected bits.
    """

    elements: int
    differing: int
    worst_ulp: float | None
    worst_coordinates: tuple[int, ...] | None
    first: tuple[Difference, ...]
    margin: float = 0.0
    spread: float = 0.0
    histogram: Mapping[float, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the output meets the rule."""
        return not self.differing and self.spread <= 1


def compare(
    actual: Array,
    expected: Array,
    rule: PrecisionRule,
    allowance: Allowance | None = None,
) -> Comparison:
    """Return how `actual` differs from `expected`, which has the same shape and data type.

    Under the rule `exact` floating-point numbers must have the same bits; -0 is not +0. Any NaN
    equals any NaN under every rule. The allowance's candidates, and the `others` and `spans` of its
    `SumErrors`, count only where the expected value is itself near a right one.

    Raises:
        ValueError: bits differ, and the rule needs something that the allowance does not have.
        LookupError: bits differ, and the allowance lacks the reference's values that the rule
            needs.
    """
    flat, target = np.ascontiguousarray(actual).ravel(), np.ascontiguousarray(expected).ravel()
    totals = _Totals()
    applied: _AppliedRule | None = None
    # Blocks that fit into the processor's cache are several times as fast as whole arrays.
    for start in range(0, len(flat), _BLOCK):
        block = slice(start, start + _BLOCK)
        if _same_bits(flat[block], target[block]):
            continue
        applied = applied or _AppliedRule(rule, allowance or Allowance(), target)
        totals.add(start, flat[block], target[block], applied)
    return totals.comparison(actual.shape, target, applied)


def _same_bits(actual: Array, expected: Array) -> bool:
    bits = f"u{actual.dtype.itemsize}"
    return bool((actual.view(bits) == expected.view(bits)).all())


class _AppliedRule:
    """A rule with everything that it permits for the elements of one output."""

    def __init__(self, rule: PrecisionRule, allowance: Allowance, expected: Array) -> None:
        self.rule = rule
        self._allowance = allowance
        is_float = expected.dtype.kind == "f"
        accumulates = rule.kind == RuleKind.ACCUMULATE and is_float
        self.accumulation = accumulation_of(rule, allowance, expected) if accumulates else None
        self.others: tuple[Array, ...] = ()
        if self.accumulation is not None:
            errors = self.accumulation.errors
            if errors.others or errors.spans or self.accumulation.may_overflow:
                # The expected value may be a right result of another device.
                self.others = (allowance.right.ravel(), *errors.others)
        self.intervals = [
            (lowest.ravel(), highest.ravel())
            for lowest, highest in permitted_intervals(rule.kind, allowance)
        ]

    @property
    def varied(self) -> bool:
        """Whether the mean of squared errors is meaningful."""
        return self.accumulation is not None and self.accumulation.varied

    @cached_property
    def alternatives(self) -> tuple[Array, ...]:
        """Flat arrays: the right values, then others from flushed operands or the FLOAT32 range.

        Empty if there are no others.
        """
        flushed = (self._allowance.flushed if self.rule.flushes else None) or ()
        in_range = self._allowance.in_range
        if in_range is None:
            return tuple(array.ravel() for array in flushed)
        arrays = *(flushed or (self._allowance.right,)), in_range
        return tuple(array.ravel() for array in arrays)

    def shares(
        self, start: int, actual: Array, expected: Array, distance: Array | None
    ) -> tuple[Array, float]:
        """Return the share of its limit that each element uses, and the sum of squared deviations.

        A deviation is an error as a share of the greatest permitted root mean square. The sum is 0
        if `varied` is false, or if an element is too far off and there are alternatives.
        """
        block = slice(start, start + len(actual))
        bounds = [(lowest[block], highest[block]) for lowest, highest in self.intervals]
        share, apart = self._used(block, actual, expected, distance, bounds)
        squares = float(np.square(apart).sum()) if apart is not None and self.varied else 0.0
        if (share > 1).any() and self.alternatives:
            near = self._near_any(block, actual, bounds) & self._near_any(block, expected, bounds)
            share = np.where(near, np.minimum(share, 1.0), share)
            squares = 0.0
        return share, squares

    def _near_any(self, block: slice, values: Array, intervals: Sequence[Interval]) -> Array:
        """Return which values the rule permits around any of the alternatives."""
        near = np.zeros(len(values), bool)
        for right in self.alternatives:
            target = right[block]
            steps = ulp_distance(values, target) if values.dtype.kind == "f" else None
            near |= self._used(block, values, target, steps, intervals)[0] <= 1
        return near

    def _used(
        self,
        block: slice,
        actual: Array,
        expected: Array,
        distance: Array | None,
        intervals: Sequence[Interval],
    ) -> tuple[Array, Array | None]:
        """Return errors as shares of their limits and, for sums, of the permitted deviation."""
        shares = apart = None
        if self.accumulation is not None:
            limits = self.accumulation.part(block)
            if self.others:
                shares, apart = self._shares_with_others(limits, block, actual, expected)
            else:
                shares, apart = limits.shares(actual, expected)
        used = rules.used(
            actual,
            expected,
            self.rule,
            distance,
            accumulated=shares,
            intervals=intervals,
            right=lambda: self._right(block),
        )
        return used, apart

    def _right(self, block: slice) -> Array | None:
        """Return what the reference gives; None if only the expected values are known."""
        try:
            return self._allowance.right.ravel()[block]
        except LookupError:
            return None

    def _shares_with_others(
        self, limits: Accumulation, block: slice, actual: Array, expected: Array
    ) -> tuple[Array, Array]:
        """Return the shares of an output that has other right values than the reference's.

        Where the expected value is near no right value, only values near the expected one are
        permitted.
        """
        reference = self.others[0][block]
        if _same_bits(expected, reference):
            return self._alternative_shares(limits, block, actual)
        right = self._alternative_shares(limits, block, expected)[0] <= 1
        if _same_bits(actual, reference):
            nearest = np.zeros(len(actual)), np.zeros(len(actual))
            if right.all():
                return nearest
        else:
            nearest = self._alternative_shares(limits, block, actual)
        shares, apart = limits.shares(actual, expected)
        for least, more in zip((shares, apart), nearest, strict=True):
            np.minimum(least, more, out=least, where=right)
        return shares, apart

    def _alternative_shares(
        self, limits: Accumulation, block: slice, values: Array
    ) -> tuple[Array, Array]:
        shares, apart = limits.shares(values, self.others[0][block])

        def keep_least(more: tuple[Array, Array]) -> None:
            np.minimum(shares, more[0], out=shares)
            np.minimum(apart, more[1], out=apart)

        for other in self.others[1:]:
            keep_least(limits.shares(values, other[block]))
        for lowest, highest in limits.errors.stacked_spans():
            known = ~np.isnan(lowest)
            of_spans = limits.shares(values, _nearest_in(lowest, highest, values))
            share, deviation = (np.where(known, each, np.inf) for each in of_spans)
            keep_least((np.minimum.reduce(share), np.minimum.reduce(deviation)))
        return shares, apart


def _nearest_in(lowest: Array, highest: Array, values: Array) -> Array:
    """Return the number in each span that is nearest to the value; the lowest one for NaN."""
    numbers: Array = np.where(np.isnan(values), lowest, values)
    return np.clip(numbers, lowest, highest)


def accumulation_of(rule: PrecisionRule, allowance: Allowance, expected: Array) -> Accumulation:
    """Return the limits of a rule of the kind `accumulate` for flat expected values.

    Raises:
        ValueError: the allowance has no error scale.
    """
    errors = allowance.flat_errors
    if errors is None:
        raise ValueError("an accumulate rule needs the error scale")
    varied = _varied(expected)
    return Accumulation(
        rule=rule,
        errors=errors,
        half=allowance.half_precision,
        varied=varied,
        # FLOAT16 elements may be equal although the magnitudes of their terms differ.
        terms_vary=not errors.terms_repeat
        and (varied or errors.terms_vary or _varied(errors.sums)),
    )


class _Totals:
    """The totals over the blocks that have been compared so far."""

    def __init__(self) -> None:
        self._elements = 0
        self._differing = 0
        self._farthest = -1
        self._farthest_at = 0
        self._margin = 0.0
        self._margin_at = 0
        self._squares = 0.0
        self._first: list[tuple[int, Any, Any]] = []
        self._steps: Counter[float] = Counter()

    def add(self, start: int, actual: Array, expected: Array, applied: _AppliedRule) -> None:
        distance = ulp_distance(actual, expected) if actual.dtype.kind == "f" else None
        share, squares = applied.shares(start, actual, expected, distance)
        self._squares += squares
        worst = int(share.argmax())
        if share[worst] > self._margin:
            self._margin, self._margin_at = float(share[worst]), start + worst
        outside = np.flatnonzero(share > 1) if self._margin > 1 else share[:0]
        self._differing += len(outside)
        for at in outside[: MOST_DIFFERENCES - len(self._first)]:
            self._first.append((start + int(at), expected[at].item(), actual[at].item()))
        if distance is not None:
            farthest = int(distance.argmax())
            if int(distance[farthest]) > self._farthest:
                self._farthest, self._farthest_at = int(distance[farthest]), start + farthest
            self._steps.update(_histogram(distance))  # `update` of a Counter adds.
            self._elements += len(distance)

    def comparison(
        self, shape: tuple[int, ...], expected: Array, applied: _AppliedRule | None
    ) -> Comparison:
        is_float = expected.dtype.kind == "f"
        if applied is None:
            return Comparison(expected.size, 0, 0.0 if is_float else None, None, ())
        worst = self._margin_at if self._margin > 0 or not is_float else self._farthest_at
        apart = self._margin > 0 or self._farthest > 0
        spread = 0.0
        if applied.varied:
            spread = self._squares / expected.size
        if is_float and self._elements < expected.size:
            self._steps[0.0] += expected.size - self._elements
        unordered = is_float and self._farthest == UNORDERED[expected.dtype.itemsize]
        return Comparison(
            elements=expected.size,
            differing=self._differing,
            worst_ulp=(math.inf if unordered else float(self._farthest)) if is_float else None,
            worst_coordinates=_coordinates(worst, shape) if apart else None,
            first=tuple(
                Difference(_coordinates(at, shape), target, actual)
                for at, target, actual in self._first
            ),
            margin=self._margin,
            spread=spread,
            histogram=dict(sorted(self._steps.items())),
        )


def _coordinates(element: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(element, shape))


def _varied(values: Array) -> bool:
    """Return whether elements are many and mostly different."""
    some = values[:_MOST_SAMPLED]
    return len(some) >= _LEAST_ELEMENTS and len(np.unique(some)) > len(some) // 2


def _histogram(distance: Array) -> dict[float, int]:
    nan = int(np.count_nonzero(distance == UNORDERED[distance.itemsize]))
    bounds = [0, *(1 << power for power in range(int(distance.max()).bit_length()))]
    # How many distances are at or beyond each bound.
    beyond = [len(distance), *(int(np.count_nonzero(distance >= at)) for at in bounds[1:]), 0]
    steps = {float(at): beyond[i] - beyond[i + 1] for i, at in enumerate(bounds)}
    if nan:
        steps[float(bounds[-1])] -= nan
        steps[math.inf] = nan
    return {step: count for step, count in steps.items() if count}
