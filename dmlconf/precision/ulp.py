"""Distances between floating-point numbers in units in the last place (ULP)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["ordered_bits", "ulp_distance"]

_UNSIGNED: Final[dict[int, type[np.unsignedinteger[Any]]]] = {
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
}


def ordered_bits(values: Array) -> Array:
    """Return unsigned integers that are ordered as the floating-point values are.

    Neighbouring numbers have neighbouring integers, across zero as well; -0 comes right
    before +0. Infinities follow the largest finite numbers, NaNs lie outside of them.

    Args:
        values: FLOAT16, FLOAT32 or FLOAT64, of any shape.
    """
    unsigned = _UNSIGNED[values.dtype.itemsize]
    bits = np.ascontiguousarray(values).view(unsigned)
    sign = unsigned(1 << (8 * values.dtype.itemsize - 1))
    ordered: Array = np.where(bits & sign, ~bits, bits | sign)
    return ordered


def ulp_distance(actual: Array, expected: Array) -> Array:
    """Return how many representable numbers lie between each pair, as UINT64.

    Equal numbers are 0 apart, -0 and +0 included; so are two NaNs. A NaN and a number are as
    far apart as UINT64 can say.

    Args:
        actual: FLOAT16, FLOAT32 or FLOAT64, of any shape.
        expected: the same data type and shape.
    """
    a, e = ordered_bits(actual).astype(np.uint64), ordered_bits(expected).astype(np.uint64)
    distance = np.where(a > e, a - e, e - a)
    # -0 and +0 are one number, so a distance across zero counts the step between them once less.
    distance -= (np.signbit(actual) != np.signbit(expected)) & (distance > 0)
    nan = np.isnan(actual) | np.isnan(expected)
    if nan.any():
        both = np.isnan(actual) & np.isnan(expected)
        distance[nan] = np.iinfo(np.uint64).max
        distance[both] = 0
    result: Array = distance
    return result
