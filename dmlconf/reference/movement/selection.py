"""Operators that pick elements by their value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array

__all__ = [
    "TopK1Desc",
    "nonzero_coordinates",
    "nonzero_coordinates_interval",
    "top_k1",
    "top_k1_candidates",
]

_HALF_OF_KEY: Final = 4
"""Bytes of an element that fit a 64-bit key together with its place."""

_MOST_NUMBERS: Final = 16
"""Elements of a line up to which each is a candidate of its own."""


def nonzero_coordinates(
    InputTensor: Array, OutputCountTensor: TensorDesc, OutputCoordinatesTensor: TensorDesc
) -> tuple[Array, Array]:
    """InputTensor {D0, D1, ...} -> OutputCountTensor {1, ...},
    OutputCoordinatesTensor {1, ..., D0 * D1 * ..., R}; UINT32; InputTensor: FLOAT32, FLOAT16, INT32
    to INT8, UINT32 to UINT8

    Return how many elements are not zero, and their coordinates in row-major order.

    As many of the last coordinates are written as the output has columns. What follows the last
    coordinates is undefined, and zero here.

    Source: the page of DML_NONZERO_COORDINATES_OPERATOR_DESC.
    """
    rows, columns = OutputCoordinatesTensor.Sizes[-2:]
    indices = np.nonzero(InputTensor)[InputTensor.ndim - columns :]
    count = len(indices[0])
    coordinates = np.zeros((rows, columns), OutputCoordinatesTensor.DataType.dtype)
    for column, along_axis in enumerate(indices):
        coordinates[:count, column] = along_axis
    total = np.full(OutputCountTensor.Sizes, count, OutputCountTensor.DataType.dtype)
    return total, coordinates.reshape(OutputCoordinatesTensor.Sizes)


def nonzero_coordinates_interval(
    InputTensor: Array, OutputCountTensor: TensorDesc, OutputCoordinatesTensor: TensorDesc
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return the count and the coordinates, twice; any number after the last coordinates.

    Where hardware may compare subnormal numbers as zeros, the last coordinates may come earlier.
    """
    count, lowest = nonzero_coordinates(InputTensor, OutputCountTensor, OutputCoordinatesTensor)
    defined = int(count.ravel()[0])
    if InputTensor.dtype == np.float32:
        normal = ~(np.abs(InputTensor) < np.finfo(np.float32).tiny)
        defined = int(np.count_nonzero(normal))
    highest = lowest.copy()
    lowest.reshape(lowest.shape[-2:])[defined:] = 0
    highest.reshape(lowest.shape[-2:])[defined:] = np.iinfo(lowest.dtype).max
    return (count, count), (lowest, highest)


@dataclass(frozen=True, slots=True)
class TopK1Desc:
    """The fields of DML_TOP_K1_OPERATOR_DESC."""

    InputTensor: Array
    OutputValueTensor: TensorDesc
    OutputIndexTensor: TensorDesc
    Axis: int
    K: int
    AxisDirection: str


@of_fields(TopK1Desc)
def top_k1(desc: TopK1Desc) -> tuple[Array, Array]:
    """InputTensor {D0, ..., A, ...} -> OutputValueTensor {D0, ..., K, ...},
    OutputIndexTensor {D0, ..., K, ...}; FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8;
    OutputIndexTensor: UINT64, UINT32

    Return the K largest elements along the axis, or the smallest, and their places.

    DECREASING gives the largest in decreasing order, INCREASING the smallest in increasing order.
    Of equal elements the one with the lower index comes first.

    Source: the page of DML_TOP_K1_OPERATOR_DESC.
    """
    return _first(desc)


@of_fields(TopK1Desc)
def top_k1_candidates(desc: TopK1Desc) -> tuple[Sequence[Interval], Sequence[Interval]]:
    """Return the elements and their places; in lines that hold a NaN any element and any place.

    No comparison orders NaN, so the order of such a line depends on how it is sorted. Measured:
    DirectML then takes some elements twice and leaves out others that belong to the first ones, but
    whatever it returns is an element of the line, or NaN, with a place in it. In a line of equal
    numbers, or of NaN alone, the element is known wherever a NaN is put.
    """
    values, places = _first(desc)
    line = desc.InputTensor
    unordered = np.isnan(line).any(desc.Axis, keepdims=True) if line.dtype.kind == "f" else None
    if unordered is None or not unordered.any():
        return [(values, values)], [(places, places)]
    with np.errstate(all="ignore"):
        numbers = np.sort(line, desc.Axis)  # NaN comes last.
    nan = np.where(unordered, values.dtype.type(np.nan), values)
    elements = [(nan, nan)]
    for least, greatest in _element_ranges(numbers, desc.Axis):
        elements.append((np.where(unordered, least, values), np.where(unordered, greatest, values)))
    first, last = (places.dtype.type(place) for place in (0, line.shape[desc.Axis] - 1))
    anywhere = np.where(unordered, first, places), np.where(unordered, last, places)
    return elements, [anywhere]


def _element_ranges(numbers: Array, axis: int) -> Iterator[Interval]:
    """Yield every number of the lines, or the least and the greatest if lines are long.

    Args:
        numbers: in order, NaN last.
        axis: along which the lines are.
    """
    last = np.maximum((~np.isnan(numbers)).sum(axis, keepdims=True) - 1, 0)
    if numbers.shape[axis] > _MOST_NUMBERS:
        yield np.take(numbers, [0], axis), np.take_along_axis(numbers, last, axis)
        return
    for place in range(int(last.max(initial=0)) + 1):
        number = np.take_along_axis(numbers, np.minimum(last, place), axis)
        yield number, number


def _first(desc: TopK1Desc) -> tuple[Array, Array]:
    """Return the first elements along the axis, and their places."""
    places = _places(desc.InputTensor, desc.Axis, desc.K, desc.AxisDirection == "DECREASING")
    values = np.take_along_axis(desc.InputTensor, places, desc.Axis)
    return values, places.astype(desc.OutputIndexTensor.DataType.dtype)


def _places(tensor: Array, axis: int, count: int, decreasing: bool) -> Array:
    """Return the places of the first elements along an axis, of equal ones the lower first."""
    size = tensor.shape[axis]
    if tensor.itemsize <= _HALF_OF_KEY:
        shape = [-1 if dimension == axis else 1 for dimension in range(tensor.ndim)]
        each = np.arange(size).reshape(shape)

        def places_of(part: Array) -> Array:
            # No two keys are equal, and numbers are sorted several times faster than places.
            keys = ~_order(part) if decreasing else _order(part)
            keys <<= 32
            keys |= each
            keys.partition(count - 1, axis)
            least = np.take(keys, np.arange(count), axis)
            least.sort(axis)
            return least & 0xFFFFFFFF

        return in_slices(places_of, tensor, dtype=np.dtype(np.int64), together=(axis,))
    if decreasing:
        # A stable sort from the end puts the last of equal elements first, from its end the first.
        backward = np.argsort(np.flip(tensor, axis), axis, kind="stable")
        places = np.flip(size - 1 - backward, axis)
    else:
        places = np.argsort(tensor, axis, kind="stable")
    return np.take(places, np.arange(count), axis)


def _order(tensor: Array) -> Array:
    """Return INT64 numbers of 32 bits in the same order; NaN is the largest, and -0 equals +0."""
    if tensor.dtype.kind != "f":
        least = np.iinfo(np.int32).min if tensor.dtype == np.uint32 else 0
        return tensor.astype(np.int64) + least
    with np.errstate(invalid="ignore"):
        values = tensor.astype(np.float32) + np.float32(0)
    np.copyto(values, np.nan, where=np.isnan(values))
    bits = values.view(np.int32)
    # Of negative numbers, greater bits are less.
    bits ^= bits >> 31 & np.iinfo(np.int32).max
    return bits.astype(np.int64)
