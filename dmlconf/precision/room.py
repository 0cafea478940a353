"""The room of elements: how far apart their lowest and highest permitted values are.

A verdict on elements with much room says little: if 0.5 to 1.5 are permitted, the room is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.accumulation import Accumulation
from dmlconf.precision.allowance import Allowance, permitted_intervals
from dmlconf.precision.compare import accumulation_of
from dmlconf.precision.rules import undefined
from dmlconf.tensors.datatypes import Array

__all__ = ["LOOSE_SHARE", "NO_ROOM", "Room", "ends_of_sums", "permitted_ends", "room"]

LOOSE_SHARE: Final = 0.1
"""An element is loose if its room exceeds this share of the output's largest finite magnitude."""

_Ends = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Room:
    """How many elements of an output a rule hardly judges.

    Attributes:
        open: elements for which any value is right.
        loose: elements, open ones included, whose room exceeds a tenth of the output's largest
            finite expected magnitude.
    """

    open: int = 0
    loose: int = 0


NO_ROOM: Final = Room()


def room(expected: Array, rule: PrecisionRule, allowance: Allowance) -> Room:
    """Return how many elements of an output a rule hardly judges.

    Flushed subnormal numbers, values of `Allowance.in_range`, and the `others` and `overflows` of
    `SumErrors` do not count as room.

    Raises:
        ValueError: the rule needs something that the allowance does not have.
    """
    if rule.kind == RuleKind.EXACT:
        return NO_ROOM
    flat = np.ascontiguousarray(expected).ravel()
    lowest, highest = permitted_ends(flat, rule, allowance)
    with np.errstate(all="ignore"):
        width = _widths(lowest, highest, flat)
        limit = LOOSE_SHARE * _largest(flat)
        most = float(width.max(initial=0))
        if most <= limit:
            return NO_ROOM  # Without loose elements none is open.
        loose = width > limit
    open_elements = undefined(lowest, highest)
    if rule.kind == RuleKind.ONE_OF:
        # Candidates at both ends of a data type do not permit the values between them.
        candidates = permitted_intervals(rule.kind, allowance)
        open_elements = np.any([undefined(a.ravel(), b.ravel()) for a, b in candidates], axis=0)
    return Room(int(np.count_nonzero(open_elements)), int(np.count_nonzero(loose)))


@np.errstate(all="ignore")
def permitted_ends(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    """Return the lowest and the highest permitted value of each element; `expected` is flat.

    Values that do not count as room are left out (see `room`).

    Raises:
        ValueError: the rule needs something that the allowance does not have.
    """
    return _ENDS[rule.kind](expected, rule, allowance)


def _exact(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    return expected, expected


def _ulp(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    if expected.dtype.kind != "f":
        return expected, expected
    return _stepped(expected, -int(rule.limit)), _stepped(expected, int(rule.limit))


def _absolute(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    return _around(expected, np.full(len(expected), float(rule.limit)))


def _relative(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    relative = rule.limit * np.abs(expected, dtype=np.float64)
    return _around(expected, relative + rule.absolute)


def _accumulate(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    if expected.dtype.kind != "f":
        return expected, expected
    return ends_of_sums(accumulation_of(rule, allowance, expected), expected)


def ends_of_sums(accumulation: Accumulation, expected: Array) -> _Ends:
    """Return the lowest and the highest permitted value of each sum; `expected` is flat.

    The fields `others` and `overflows` of `SumErrors` do not count.
    """
    lowest, highest = accumulation.ends(expected)
    for least, greatest in accumulation.errors.stacked_spans():
        below, above = (accumulation.ends(ends, expected.dtype) for ends in (least, greatest))
        lowest = np.fmin(lowest, np.fmin.reduce(below[0]))
        highest = np.fmax(highest, np.fmax.reduce(above[1]))
    return lowest, highest


def _interval(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    """Return the interval, but only the expected value where it lies outside of the interval."""
    interval = allowance.interval
    if interval is None:
        raise ValueError("an interval rule needs the interval")
    lowest, highest = interval[0].ravel(), interval[1].ravel()
    outside = ~((expected >= lowest) & (expected <= highest))
    if outside.any():
        outside &= ~undefined(lowest, highest)
        return np.where(outside, expected, lowest), np.where(outside, expected, highest)
    return lowest, highest


def _one_of(expected: Array, rule: PrecisionRule, allowance: Allowance) -> _Ends:
    candidates = [
        (lowest.ravel(), highest.ravel())
        for lowest, highest in permitted_intervals(rule.kind, allowance)
    ]
    lowest = np.fmin.reduce([ends[0] for ends in candidates])
    highest = np.fmax.reduce([ends[1] for ends in candidates])
    return lowest, highest


_ENDS: Final[Mapping[RuleKind, Callable[[Array, PrecisionRule, Allowance], _Ends]]] = {
    RuleKind.EXACT: _exact,
    RuleKind.ULP: _ulp,
    RuleKind.ABSOLUTE: _absolute,
    RuleKind.RELATIVE: _relative,
    RuleKind.ACCUMULATE: _accumulate,
    RuleKind.INTERVAL: _interval,
    RuleKind.ONE_OF: _one_of,
}


def _stepped(values: Array, steps: int) -> Array:
    """Return the numbers that are `steps` ULPs higher, or lower if negative, up to infinity."""
    integer = np.dtype(f"i{values.itemsize}")
    turn = np.iinfo(integer).min
    bits = values.view(integer)
    last = int(np.array(np.inf, values.dtype).view(integer))
    # Positive numbers are ordered like their bits, negative ones the other way round.
    order = np.clip(np.where(bits < 0, turn - bits, bits), -last, last)
    order = np.clip(order.astype(np.int64) + steps, -last, last).astype(integer)
    stepped: Array = np.where(order < 0, turn - order, order).astype(integer).view(values.dtype)
    return np.where(np.isnan(values), values, stepped)


def _around(expected: Array, error: Array) -> _Ends:
    """Return the expected values minus and plus an error; infinite and NaN errors count as 0."""
    error = np.where(np.isfinite(error), error, 0)
    return expected - error, expected + error


def _widths(lowest: Array, highest: Array, expected: Array) -> Array:
    """Return `highest - lowest`; infinity counts as the largest number, and a NaN makes 0."""
    width = np.subtract(highest, lowest, dtype=np.float64)
    if expected.dtype.kind == "f" and not np.isfinite(width.sum()):
        special = np.flatnonzero(~np.isfinite(width))
        most = float(np.finfo(expected.dtype).max)
        ends = (np.clip(end[special].astype(np.float64), -most, most) for end in (highest, lowest))
        width[special] = np.nan_to_num(np.subtract(*ends), nan=0.0, posinf=np.inf)
    return width


def _largest(expected: Array) -> float:
    magnitude = np.abs(expected.astype(np.float64) if expected.dtype.kind != "f" else expected)
    largest = float(magnitude.max(initial=0))
    if not np.isfinite(largest):
        largest = float(magnitude[np.isfinite(magnitude)].max(initial=0))
    return largest
