"""Evaluate precision rules: what share of its limit each element uses.

The limits of the rule `accumulate` are in `accumulation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import Array

__all__ = ["undefined", "used", "within"]


def used(
    actual: Array,
    expected: Array,
    rule: PrecisionRule,
    distance: Array | None,
    *,
    accumulated: Array | None = None,
    intervals: Sequence[Interval] = (),
    right: Callable[[], Array | None] = lambda: None,
) -> Array:
    """Return for each element its error as a share of the limit; above 1 it is too large.

    The arrays are flat. If the rule flushes and is not `exact`, zero against an expected subnormal
    number has no error, nor has a subnormal number against an expected zero, unless the reference
    is known to give zero too. -0 against +0 has an infinite error if the rule tells signed zeros
    apart.

    Args:
        distance: the distance of each pair in ULP; None for integers.
        accumulated: for `accumulate`, the shares that `Accumulation` gives.
        intervals: for `interval`, the one interval; for `one of`, the candidates.
        right: returns what the reference gives; None if that is not known.

    Raises:
        ValueError: the rule needs accumulated shares or intervals, and there are none.
    """
    kind = rule.kind
    if kind in (RuleKind.INTERVAL, RuleKind.ONE_OF):
        if not intervals:
            needed = "interval" if kind is RuleKind.INTERVAL else "candidates"
            raise ValueError(f"the rule `{kind}` needs the {needed}")
        if kind is RuleKind.INTERVAL:
            share = _share_of_interval(actual, expected, *intervals[0])
        else:
            share = _share_of_candidates(actual, expected, intervals)
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
        if accumulated is None:
            raise ValueError("an accumulate rule needs the error scale")
        share = accumulated
    else:
        share = _share_of_difference(actual, expected, rule)
    if rule.flushes and kind is not RuleKind.EXACT and actual.dtype.kind == "f":
        flushed = np.flatnonzero(actual == 0)
        share[flushed[_is_small(expected[flushed])]] = 0
        kept = np.flatnonzero(expected == 0)
        kept = kept[_is_small(actual[kept]) & (actual[kept] != 0)]
        if len(kept):
            reference = right()
            if reference is not None:
                kept = kept[_is_small(reference[kept]) & (reference[kept] != 0)]
            share[kept] = 0
    if rule.signed_zeros and actual.dtype.kind == "f":
        zero = np.flatnonzero((actual == 0) & (expected == 0))
        share[zero[np.signbit(actual[zero]) != np.signbit(expected[zero])]] = math.inf
    return share


def _is_small(values: Array) -> Array:
    """Return which numbers are subnormal or zero."""
    small: Array = np.abs(values) < np.finfo(values.dtype).tiny
    return small


@np.errstate(invalid="ignore")
def _share_of_interval(actual: Array, expected: Array, lowest: Array, highest: Array) -> Array:
    """Return shares: 0 for the expected value, at most 1 in the interval, infinity outside.

    Any value of an open element has the share 0. An expected value outside the interval permits
    only values equal to it.
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
        # Within the interval, only 0 / 0 and infinity / infinity are special.
        share[special] = np.where(same, 0.0, np.where(within[special], 1.0, math.inf))
    share[undefined(lowest, highest)] = 0
    return share


def _share_of_candidates(actual: Array, expected: Array, candidates: Sequence[Interval]) -> Array:
    """Return the least of the shares that the candidates give, at most 1 within any candidate.

    An expected value that is in no candidate permits only values equal to it.
    """
    known = np.logical_or.reduce([within(expected, *ends) for ends in candidates])
    share: Array = np.minimum.reduce(
        [_share_of_interval(actual, expected, *ends) for ends in candidates]
    )
    chosen = np.logical_or.reduce([within(actual, *ends) for ends in candidates])
    share[known & chosen] = np.minimum(share[known & chosen], 1.0)
    return share


@np.errstate(invalid="ignore")
def within(values: Array, lowest: Array, highest: Array) -> Array:
    """Return which values lie in an interval: any in an open one, NaN if both ends are NaN."""
    within: Array = (values >= lowest) & (values <= highest)
    if values.dtype.kind == "f":
        within |= np.isnan(values) & np.isnan(lowest) & np.isnan(highest)
    within |= undefined(lowest, highest)
    return within


def undefined(lowest: Array, highest: Array) -> Array:
    """Return which elements are open: the interval is the whole data type."""
    if lowest.dtype.kind == "f":
        return np.isneginf(lowest) & np.isposinf(highest)
    limits = np.iinfo(lowest.dtype)
    unbounded: Array = (lowest == limits.min) & (highest == limits.max)
    return unbounded


def _share_of_difference(actual: Array, expected: Array, rule: PrecisionRule) -> Array:
    with np.errstate(all="ignore"):
        share = np.subtract(actual, expected, dtype=np.float64)
        np.abs(share, out=share)
        if rule.kind == RuleKind.RELATIVE:
            share /= np.abs(expected, dtype=np.float64) * rule.limit + rule.absolute
        else:
            share /= rule.limit
        # An infinite expected value has an infinite relative limit, but only infinity is right.
        special = np.flatnonzero(~np.isfinite(share) | np.isinf(expected))
    if len(special):
        a, e = actual[special], expected[special]
        same = (a == e) | (np.isnan(a) & np.isnan(e))
        share[special] = np.where(same, 0.0, math.inf)
    return share
