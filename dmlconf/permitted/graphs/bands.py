"""Tolerance bands: the values that a node's rule permits for each element of its output.

If the right value is 1 and the rule permits an error of 0.25, the band is 0.75 to 1.25. The band
depends on the node's inputs, so each evaluation of a graph has its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import Operator
from dmlconf.catalogue.precision import RuleKind
from dmlconf.precision.allowance import MOST_TOGETHER, Allowance, Interval, permitted_intervals
from dmlconf.precision.compare import accumulation_of
from dmlconf.precision.room import ends_of_sums, permitted_ends
from dmlconf.precision.rules import undefined
from dmlconf.tensors.datatypes import Array

__all__ = ["OVERFLOWED", "AllowanceOf", "Band", "band_of", "bands_of", "is_one_to_one", "stored"]

_ONE_TO_ONE: Final = ("element_wise.", "activation.operators")
"""Families of operators that compute each element from one element of each input."""

AllowanceOf = Callable[[Case, str], Allowance]
"""Returns the allowance of an output of one operator."""


OVERFLOWED: Final = (math.nan, math.inf, -math.inf)
"""What a sum that overflows may give."""


@dataclass(frozen=True, slots=True)
class Band:
    """The tolerance band of an output of a node; all arrays have the output's sizes.

    Attributes:
        right: what the reference computes, in the output's data type.
        open: for which elements any value is right.
        overflows: where NaN, infinity and negative infinity are right as well as another value,
            since a sum may overflow; None for nowhere.
        nan: where NaN is one of the candidates; None for nowhere.
    """

    right: Array
    lowest: Array
    highest: Array
    open: Array
    overflows: tuple[Array, ...] | None = None
    nan: Array | None = None

    @property
    def beyond(self) -> Array | None:
        """Where a permitted value need not be near the right one; None for nowhere."""
        beyond = self.open
        for more in (*(self.overflows or ()), self.nan):
            beyond = beyond if more is None else beyond | more
        return beyond if beyond.any() else None

    @property
    def exact(self) -> bool:
        """Whether both ends of the band are the right values."""
        same = (self.lowest == self.right) & (self.highest == self.right)
        if self.right.dtype.kind == "f":
            same |= np.isnan(self.right) & np.isnan(self.lowest) & np.isnan(self.highest)
        return bool(same.all())

    @property
    @np.errstate(all="ignore")
    def finite_ends(self) -> Interval:
        """The ends of the band, with infinite ends replaced.

        A replaced end is as far from the right value as the other end: if 1e22 may be 1% too small,
        or infinite, the ends are 9.9e21 and 1.01e22. Infinite right values keep their ends.
        """
        right, ends = self.right, (self.lowest, self.highest)
        if right.dtype.kind != "f" or np.isfinite(ends).all():
            return ends
        least, greatest = (
            np.where(np.isinf(end) & np.isfinite(right), right + (right - other), end)
            for end, other in (ends, ends[::-1])
        )
        return least, greatest

    @np.errstate(all="ignore")
    def moved(self, far: Array) -> Array:
        """Return the right values, moved toward the ends of the band as far as `far` says.

        With -1 they become the lowest permitted value, with 1 the highest; with 0.5 they move half
        way to the highest. If an end is infinite, they move part of the way to `finite_ends`. An
        infinite right value becomes the largest finite number if the band's other end is finite and
        `far` is between -1 and 1. Elements that are open, or whose end is NaN, do not move.
        """
        values = self.right
        ends = between = np.where(far > 0, self.highest, self.lowest)
        share = np.abs(far)
        inside = share < 1
        if inside.any():
            near = np.where(far > 0, *reversed(self.finite_ends))
            between = self._before_infinity(ends, inside)
            inside &= np.isfinite(near) & np.isfinite(values) & (near != values)
            between = np.where(inside, values + share * (near - values), between)
        kept = np.isnan(ends) | self.open
        return np.where(kept, values, stored(between, values))

    def _before_infinity(self, ends: Array, inside: Array) -> Array:
        """Return the ends, but the largest finite number where the right value is infinite.

        Elements that are not `inside`, or whose other end is not finite, keep their end.
        """
        if self.right.dtype.kind != "f" or not np.isinf(self.right).any():
            return ends
        other = np.where(self.right > 0, self.lowest, self.highest)
        inside = inside & np.isinf(self.right) & np.isfinite(other)
        largest = float(np.finfo(self.right.dtype).max)
        return np.where(inside, np.copysign(largest, self.right), ends)


@np.errstate(all="ignore")
def stored(values: Array, like: Array) -> Array:
    """Return values in the data type of `like`; to integers they are truncated and clipped.

    FLOAT64 does not hold every 64-bit integer, so values that equal `like` in FLOAT64 become those
    of `like`.
    """
    if like.dtype.kind == "f":
        return values.astype(like.dtype)
    limits = np.iinfo(like.dtype)
    kept = (values == like) | (values <= limits.min) | (values >= float(limits.max))
    moved = np.where(kept, 0, values).astype(like.dtype)
    moved = np.where(values <= limits.min, like.dtype.type(limits.min), moved)
    moved = np.where(values >= float(limits.max), like.dtype.type(limits.max), moved)
    return np.where(values == like, like, moved)


_SORTING: Final = frozenset({"TOP_K", "TOP_K1"})
"""Operators that may return any element and any index of a line with NaN. Samples show few of them,
so each element whose band has two different ends is open."""


def band_of(case: Case, tensor: str, right: Array, allowance_of: AllowanceOf) -> Band:
    """Return the band around `right`, an output of a node that is given as a case."""
    rule = case.rule(tensor)
    flat = np.ascontiguousarray(right).ravel()
    allowance = allowance_of(case, tensor)
    sums = None
    if rule.kind is RuleKind.ACCUMULATE and right.dtype.kind == "f":
        sums = accumulation_of(rule, allowance, flat)
        lowest, highest = ends_of_sums(sums, flat)
    else:
        lowest, highest = permitted_ends(flat, rule, allowance)
    lowest, highest = lowest.reshape(right.shape), highest.reshape(right.shape)
    open_elements = undefined(lowest, highest)
    nan = None
    if rule.kind is RuleKind.ONE_OF:
        intervals = permitted_intervals(rule.kind, allowance)
        if right.dtype.kind == "f":
            nan = _other_nan(right, intervals)
        else:
            # Two candidates at opposite ends of a data type permit no value between them.
            each = [undefined(low.ravel(), high.ravel()) for low, high in intervals]
            open_elements = np.any(each, axis=0).reshape(right.shape)
    if case.operator_name in _SORTING:
        open_elements = open_elements | (lowest != highest)
    if rule.flushes and right.dtype.kind == "f":
        small = np.abs(right) < np.finfo(right.dtype).tiny
        lowest = np.where(small, np.minimum(lowest, 0), lowest)
        highest = np.where(small, np.maximum(highest, 0), highest)
    overflows = None
    if sums is not None:
        specials = [(each, sums.overflowing_to(each, right.dtype)) for each in OVERFLOWED]
        # An overflow to the infinity that is right anyway leaves no doubt.
        where = [
            each.reshape(right.shape) & (right != value)
            for value, each in specials
            if each is not None
        ]
        overflows = tuple(where) or None
        for other in sums.errors.others:
            ends = permitted_ends(other, rule, allowance)
            least, greatest = (end.reshape(right.shape) for end in ends)
            lowest, highest = np.fmin(lowest, least), np.fmax(highest, greatest)
            nan = _either(nan, _other_nan(right, [(other, other)]))
    return Band(right, lowest, highest, open_elements, overflows, nan)


def bands_of(
    cases: Sequence[Case], tensor: str, values: Sequence[Array], allowance_of: AllowanceOf
) -> list[Band]:
    """Return the band of an output of a node for each of several evaluations."""
    if len(cases) < 2 or not _computes_alone(cases[0], tensor, len(cases) * values[0].size):
        return [
            band_of(case, tensor, each, allowance_of)
            for case, each in zip(cases, values, strict=True)
        ]
    together = band_of(_stacked(cases), tensor, np.stack(values), allowance_of)
    return [
        Band(each, together.lowest[index], together.highest[index], together.open[index])
        for index, each in enumerate(values)
    ]


def is_one_to_one(operator: Operator) -> bool:
    """Return whether each element of an output follows from one element of each input."""
    return catalogue.family_of(operator).startswith(_ONE_TO_ONE)


def _computes_alone(case: Case, tensor: str, elements: int) -> bool:
    """Return whether elements are few, and each interval follows from one element of each input."""
    return (
        elements <= MOST_TOGETHER
        and is_one_to_one(case.operator)
        and case.rule(tensor).kind is RuleKind.INTERVAL
        and len({array.shape for array in case.inputs().values()}) == 1
    )


def _stacked(cases: Sequence[Case]) -> Case:
    """Return one case on the inputs of several, stacked along a new first axis of all tensors."""

    def longer(name: str, desc: TensorDesc) -> TensorDesc:
        sizes = (len(cases), *desc.Sizes)
        return TensorDesc(desc.DataType, sizes)

    inputs = [case.inputs() for case in cases]
    arrays = {name: np.stack([each[name] for each in inputs]) for name in inputs[0]}
    return cases[0].with_tensors(longer).with_data(arrays)


def _either(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _other_nan(right: Array, intervals: Sequence[Interval]) -> Array | None:
    """Return where NaN is a candidate besides a number; None for nowhere."""
    each = [np.isnan(low) & np.isnan(high) for low, high in intervals]
    nan: Array = np.logical_or.reduce(each).reshape(right.shape) & ~np.isnan(right)
    return nan if nan.any() else None
