"""Permitted results of TOP_K and NONZERO_COORDINATES besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.movement.selection import TopK1Desc, first_elements, nonzero_coordinates
from dmlconf.tensors.datatypes import Array

__all__ = [
    "nonzero_coordinates_interval",
    "top_k1_candidates",
]

_MOST_NUMBERS: Final = 16
"""In a line of TOP_K with NaN and at most this many elements, each element is a candidate."""


def nonzero_coordinates_interval(
    InputTensor: Array, OutputCountTensor: TensorDesc, OutputCoordinatesTensor: TensorDesc
) -> tuple[Interval, Interval]:
    """Return the intervals of the count, which is exact, and of the coordinates.

    Rows after the last coordinates may have any numbers. Hardware may take subnormal FLOAT32
    elements for zeros: with k of them, the last k rows of coordinates may also have any numbers.
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


@of_fields(TopK1Desc)
def top_k1_candidates(desc: TopK1Desc) -> tuple[Sequence[Interval], Sequence[Interval]]:
    """Return the candidates of the values of TOP_K, and those of the indices.

    In a line with a NaN, any element, NaN included, and any index of the line is right. If it has
    more than 16 elements, any number from its least to its greatest element is right, too.

    Measured: for a line with a NaN, DirectML returns some elements twice and leaves out others.
    """
    values, indices = first_elements(desc)
    line = desc.InputTensor
    unordered = np.isnan(line).any(desc.Axis, keepdims=True) if line.dtype.kind == "f" else None
    if unordered is None or not unordered.any():
        return [(values, values)], [(indices, indices)]
    with np.errstate(all="ignore"):
        numbers = np.sort(line, desc.Axis)  # NaN comes last.
    nan = np.where(unordered, values.dtype.type(np.nan), values)
    elements = [(nan, nan)]
    for least, greatest in _element_ranges(numbers, desc.Axis):
        elements.append((np.where(unordered, least, values), np.where(unordered, greatest, values)))
    first, last = (indices.dtype.type(index) for index in (0, line.shape[desc.Axis] - 1))
    anywhere = np.where(unordered, first, indices), np.where(unordered, last, indices)
    return elements, [anywhere]


def _element_ranges(numbers: Array, axis: int) -> Iterator[Interval]:
    """Yield each number of sorted lines as an interval, or if lines are long, the whole range."""
    last = np.maximum((~np.isnan(numbers)).sum(axis, keepdims=True) - 1, 0)
    if numbers.shape[axis] > _MOST_NUMBERS:
        yield np.take(numbers, [0], axis), np.take_along_axis(numbers, last, axis)
        return
    for index in range(int(last.max(initial=0)) + 1):
        number = np.take_along_axis(numbers, np.minimum(last, index), axis)
        yield number, number
