"""Compare an output with what is expected, under a precision rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.model import PrecisionRule
from dmlconf.precision.ulp import ulp_distance
from dmlconf.tensors.datatypes import Array

__all__ = ["MOST_DIFFERENCES", "Comparison", "Difference", "compare"]

MOST_DIFFERENCES = 5
"""How many differing elements a comparison keeps."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One element outside the rule.

    Attributes:
        coordinates: its place in the output.
        expected: the expected value.
        actual: the value that the backend computed.
    """

    coordinates: tuple[int, ...]
    expected: float | int
    actual: float | int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two arrays of one shape and type found.

    Attributes:
        elements: how many elements were compared.
        differing: how many of them are outside the rule.
        worst_ulp: the greatest distance in ULP; None for integers, infinite against a NaN.
        worst_coordinates: where that is; None where nothing differs.
        first: the first elements outside the rule, in row-major order.
    """

    elements: int
    differing: int
    worst_ulp: float | None
    worst_coordinates: tuple[int, ...] | None
    first: tuple[Difference, ...]


def compare(actual: Array, expected: Array, rule: PrecisionRule) -> Comparison:
    """Return how `actual` differs from `expected`.

    Under the rule `exact` floating-point numbers must have the same bits; -0 is not +0. Any NaN
    equals any NaN under every rule.

    Args:
        actual: what a backend computed.
        expected: an array of the same shape and data type.
        rule: how far apart elements may be.
    """
    is_float = actual.dtype.kind == "f"
    if _identical(actual, expected):
        return Comparison(actual.size, 0, 0.0 if is_float else None, None, ())
    distance = ulp_distance(actual, expected) if is_float else None
    outside = _outside(actual, expected, rule, distance)
    worst_ulp = None
    worst = None
    if distance is not None:
        greatest = distance.max()
        worst_ulp = math.inf if greatest == np.iinfo(np.uint64).max else float(greatest)
        if greatest:
            worst = _coordinates(int(distance.argmax()), actual.shape)
    places = np.flatnonzero(outside)
    if worst is None and len(places):
        worst = _coordinates(int(places[0]), actual.shape)
    first = tuple(
        Difference(
            _coordinates(int(place), actual.shape),
            expected.ravel()[place].item(),
            actual.ravel()[place].item(),
        )
        for place in places[:MOST_DIFFERENCES]
    )
    return Comparison(actual.size, len(places), worst_ulp, worst, first)


def _identical(actual: Array, expected: Array) -> bool:
    unsigned = f"u{actual.dtype.itemsize}"
    same = np.ascontiguousarray(actual).view(unsigned) == np.ascontiguousarray(expected).view(
        unsigned
    )
    return bool(same.all())


def _outside(actual: Array, expected: Array, rule: PrecisionRule, distance: Array | None) -> Array:
    if distance is None:
        if rule.kind in ("absolute", "relative"):
            return _beyond(actual, expected, rule)
        unequal: Array = actual != expected
        return unequal
    if rule.kind == "exact":
        zero_signs = (actual == 0) & (np.signbit(actual) != np.signbit(expected))
        outside: Array = (distance > 0) | (zero_signs & (expected == 0))
        return outside
    if rule.kind == "ulp":
        return distance > rule.limit
    return _beyond(actual, expected, rule)


def _beyond(actual: Array, expected: Array, rule: PrecisionRule) -> Array:
    """Tell which elements are further away than an absolute or a relative limit."""
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(a - e)
        limit = rule.limit * np.abs(e) if rule.kind == "relative" else rule.limit
        near = (error <= limit) | (a == e) | (np.isnan(a) & np.isnan(e))
    # An infinite expectation has an infinite relative limit, which only itself may use.
    outside: Array = ~near | (np.isinf(e) & (a != e))
    return outside


def _coordinates(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(place, shape))
