"""The rules: how much of its limit each element uses."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.tensors.datatypes import Array

__all__ = ["accumulated_errors", "accumulated_limit", "undefined", "used", "variance_limit"]

_FRACTION_BITS: Final = {2: 10, 4: 23, 8: 52}
_ACCUMULATOR_BITS: Final = {2: 23, 4: 23, 8: 52}


def used(
    actual: Array,
    expected: Array,
    rule: PrecisionRule,
    distance: Array | None,
    *,
    errors: Array | None = None,
    interval: tuple[Array, Array] | None = None,
    half: bool = False,
) -> Array:
    """Return the share of the limit that each element uses: 0 for none, above 1 for too far.

    Args:
        actual: what a backend computed, flat.
        expected: as long, of the same data type.
        rule: the rule.
        distance: the distance of each pair in ULP; None for integers.
        errors: for `accumulate`, what `accumulated_errors` returns.
        interval: for `interval`, the least and greatest right values.
        half: whether sums may be FLOAT16.

    Raises:
        ValueError: the rule needs accumulated errors or an interval, and there are none.
    """
    kind = RuleKind(rule.kind)
    if kind is RuleKind.INTERVAL:
        if interval is None:
            raise ValueError("an interval rule needs the interval")
        share = _outside(actual, expected, *interval)
    elif distance is None and kind not in (RuleKind.ABSOLUTE, RuleKind.RELATIVE):
        share = np.where(actual == expected, 0.0, math.inf)
    elif kind is RuleKind.EXACT:
        bits = f"u{actual.dtype.itemsize}"
        same = actual.view(bits) == expected.view(bits)
        if not same.all():
            same |= np.isnan(actual) & np.isnan(expected)
        share = np.where(same, 0.0, math.inf)
    elif kind is RuleKind.ULP:
        assert distance is not None
        share = distance / rule.limit
    elif kind is RuleKind.ACCUMULATE:
        if errors is None:
            raise ValueError("an accumulate rule needs the magnitude")
        share = np.abs(errors) / accumulated_limit(actual.dtype.itemsize, rule, half=half)
    else:
        share = _beyond(actual, expected, rule)
    if rule.flushes and actual.dtype.kind == "f":
        tiny = np.finfo(actual.dtype).tiny
        for one, other in ((actual, expected), (expected, actual)):
            zero = np.flatnonzero(one == 0)
            if len(zero):
                share[zero[np.abs(other[zero]) < tiny]] = 0
    return share


def accumulated_limit(size: int, rule: PrecisionRule, *, half: bool) -> float:
    """Return the greatest error of a sum of products, in the unit of `accumulated_errors`.

    Source: TOSA 1.1, dot products: twice the number of products, where these are counted down by
    the bits that the accumulator has beyond the output.

    Args:
        size: bytes of the output's data type.
        rule: the rule.
        half: whether sums may be FLOAT16.
    """
    return 2 * rule.limit * _terms(size, rule, half=half)


def variance_limit(size: int, rule: PrecisionRule, *, half: bool) -> float:
    """Return the greatest mean of squared errors, in the unit of `accumulated_errors`, squared.

    Source: TOSA 1.1, dot products: 4 times 0.4 for each product.
    """
    return 1.6 * rule.limit**2 * _terms(size, rule, half=half)


def _terms(size: int, rule: PrecisionRule, *, half: bool) -> int:
    accumulator = _FRACTION_BITS[size] if half else _ACCUMULATOR_BITS[size]
    return math.ceil(rule.products / 2 ** ((accumulator - _FRACTION_BITS[size]) / 2))


def accumulated_errors(
    actual: Array, expected: Array, rule: PrecisionRule, magnitude: Array, *, half: bool
) -> Array:
    """Return signed errors in halves of the last place of the magnitude, FLOAT64.

    An infinite element counts as the power of two above the largest number. Where the magnitude
    exceeds what a sum can hold, one on the way may have overflowed, and any result is right. Where
    it is not finite itself, inputs were not: then the expected value takes its place.
    """
    size = actual.dtype.itemsize
    info = np.finfo(actual.dtype)
    floor = float(info.tiny) if rule.flushes else float(info.smallest_subnormal) / 2
    accumulator = np.float16 if half and size == 2 else np.float32 if size < 8 else np.float64
    with np.errstate(all="ignore"):
        unit = magnitude * 2.0 ** (-1 - _FRACTION_BITS[size])
        np.maximum(unit, floor, out=unit)
        error = np.subtract(actual, expected, dtype=np.float64)
        error /= unit
        # What adds up no products at all is exact, and what is not finite is looked at alone.
        special = np.flatnonzero(
            ~np.isfinite(error) | (magnitude == 0) | ~(magnitude <= np.finfo(accumulator).max)
        )
    if len(special):
        a, e, m, u = actual[special], expected[special], magnitude[special], unit[special]
        own = np.maximum(np.abs(e, dtype=np.float64) * 2.0 ** (-1 - _FRACTION_BITS[size]), floor)
        u = np.where(np.isfinite(m), u, own)
        error[special] = _special_errors(a, e, m, u, float(np.finfo(accumulator).max))
    return error


def _special_errors(
    actual: Array, expected: Array, magnitude: Array, unit: Array, overflow: float
) -> Array:
    info = np.finfo(actual.dtype)
    beyond = 2.0 ** math.frexp(float(info.max))[1]
    with np.errstate(all="ignore"):
        a = np.clip(actual.astype(np.float64), -beyond, beyond)
        e = np.clip(expected.astype(np.float64), -beyond, beyond)
        error = np.where(magnitude == 0, math.inf, (a - e) / unit)
        error = np.where(np.isnan(error), math.inf, error)
    error = np.where(np.isfinite(unit), error, math.inf)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    overflowed = np.isfinite(magnitude) & (magnitude > overflow)
    return np.where(same | overflowed, 0.0, error)


def _outside(actual: Array, expected: Array, lowest: Array, highest: Array) -> Array:
    """Return 0 for the expected value itself, up to 1 within the interval, infinity outside.

    Of undefined elements any value is as good as another. An expected value that lies outside
    itself, such as one recorded elsewhere, makes nothing right but what is equal to it.
    """
    within = (actual >= lowest) & (actual <= highest)
    within &= (expected >= lowest) & (expected <= highest)
    with np.errstate(all="ignore"):
        share = np.subtract(actual, expected, dtype=np.float64)
        share /= np.subtract(
            np.where(actual > expected, highest, lowest), expected, dtype=np.float64
        )
    special = np.flatnonzero(~(within & (share <= 1)))
    if len(special):
        a, e = actual[special], expected[special]
        same = a == e
        if a.dtype.kind == "f":
            same |= np.isnan(a) & np.isnan(e)
        # Infinite ends of an interval leave room that no share can be told of.
        share[special] = np.where(same, 0.0, np.where(within[special], 1.0, math.inf))
    share[undefined(lowest, highest)] = 0
    return share


def undefined(lowest: Array, highest: Array) -> Array:
    """Tell of which elements an interval says nothing: it holds all that the data type does."""
    if lowest.dtype.kind == "f":
        return np.isneginf(lowest) & np.isposinf(highest)
    limits = np.iinfo(lowest.dtype)
    unbounded: Array = (lowest == limits.min) & (highest == limits.max)
    return unbounded


def _beyond(actual: Array, expected: Array, rule: PrecisionRule) -> Array:
    with np.errstate(all="ignore"):
        share = np.subtract(actual, expected, dtype=np.float64)
        np.abs(share, out=share)
        if rule.kind == RuleKind.RELATIVE:
            share /= np.abs(expected, dtype=np.float64) * rule.limit
        else:
            share /= rule.limit
        # An infinite expectation has an infinite relative limit, which only itself may use.
        special = np.flatnonzero(~np.isfinite(share) | np.isinf(expected))
    if len(special):
        a, e = actual[special], expected[special]
        same = (a == e) | (np.isnan(a) & np.isnan(e))
        share[special] = np.where(same, 0.0, math.inf)
    return share
