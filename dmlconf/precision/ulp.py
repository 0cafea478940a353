"""Distances between floating-point numbers in units in the last place (ULP)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["UNORDERED", "ordered_bits", "ulp_distance"]

_SIGNED: Final[dict[int, type[np.signedinteger[Any]]]] = {2: np.int16, 4: np.int32, 8: np.int64}
_UNSIGNED: Final[dict[int, type[np.unsignedinteger[Any]]]] = {
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
}

UNORDERED: Final = {size: int(np.iinfo(kind).max) for size, kind in _UNSIGNED.items()}
"""The distance between a NaN and a number, by bytes of an element; all other distances are less."""


def ordered_bits(values: Array) -> Array:
    """Return unsigned integers in the order of the floating-point values, in their shape.

    Neighbouring numbers have neighbouring integers; -0 comes right before +0. Infinities follow the
    largest finite numbers, and NaNs lie beyond the infinities.

    Args:
        values: FLOAT16, FLOAT32 or FLOAT64, of any shape.
    """
    unsigned = _UNSIGNED[values.dtype.itemsize]
    bits = np.ascontiguousarray(values).view(unsigned)
    sign = unsigned(1 << (8 * values.dtype.itemsize - 1))
    ordered: Array = np.where(bits & sign, ~bits, bits | sign)
    return ordered.reshape(values.shape)


def ulp_distance(actual: Array, expected: Array) -> Array:
    """Return the distance of each pair in ULP: 1 for neighbours in their data type.

    The distance is 0 for equal numbers, for -0 and +0, and for two NaNs; a NaN and a number have
    the distance `UNORDERED`.

    Args:
        actual: FLOAT16, FLOAT32 or FLOAT64, of any shape.
        expected: the same data type and shape.

    Returns:
        Unsigned integers as wide as the data type, in the shape of `actual`.
    """
    size = actual.dtype.itemsize
    signed, unsigned = _SIGNED[size], _UNSIGNED[size]
    a = np.ascontiguousarray(actual).view(signed)
    e = np.ascontiguousarray(expected).view(signed)
    # With different signs, the distances of both numbers from zero add up.
    distance: Array = np.abs(a - e).view(unsigned)
    opposite = (a ^ e) < 0
    if opposite.any():
        largest = np.iinfo(signed).max
        across = (a[opposite] & largest).view(unsigned) + (e[opposite] & largest).view(unsigned)
        distance[opposite] = across
    nan = np.isnan(actual)
    other = np.isnan(expected)
    if nan.any() or other.any():
        distance[nan ^ other] = UNORDERED[size]
        distance[nan & other] = 0
    return distance.reshape(actual.shape)
