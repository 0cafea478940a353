"""Permitted results of TOP_K and NONZERO_COORDINATES besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.subnormals import with_and_without_subnormals
from dmlconf.precision.allowance import Interval
from dmlconf.precision.consequences import Consequence
from dmlconf.reference.fields import of_fields
from dmlconf.reference.movement.selection import TopK1Desc, first_elements, nonzero_coordinates
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "nonzero_coordinates_consequences",
    "nonzero_coordinates_interval",
    "top_k1_candidates",
    "top_k1_consequences",
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
    return (count, count), _any_after(defined, lowest)


def nonzero_coordinates_consequences(
    InputTensor: Array, OutputCountTensor: Array | None, OutputCoordinatesTensor: Array | None
) -> Sequence[Consequence]:
    """Return the coordinates that follow from the count.

    They are those of the elements that are not zero, or of those that are neither zero nor
    subnormal FLOAT32 numbers. Rows after as many as the count says may have any numbers.
    """
    if OutputCountTensor is None or OutputCoordinatesTensor is None:
        return ()
    descs = [
        TensorDesc(DataType(array.dtype.name.upper()), array.shape)
        for array in (OutputCountTensor, OutputCoordinatesTensor)
    ]
    choices = []
    for values in with_and_without_subnormals(InputTensor):
        count, lowest = nonzero_coordinates(values, *descs)
        if np.array_equal(count, OutputCountTensor):
            choices.append([_any_after(int(count.ravel()[0]), lowest)])
    given = ("OutputCountTensor",)
    return (Consequence("OutputCoordinatesTensor", given, choices),) if choices else ()


def _any_after(rows: int, coordinates: Array) -> Interval:
    """Return the interval of coordinates with any numbers after so many rows."""
    lowest, highest = coordinates.copy(), coordinates.copy()
    lowest.reshape(lowest.shape[-2:])[rows:] = 0
    highest.reshape(lowest.shape[-2:])[rows:] = np.iinfo(lowest.dtype).max
    return lowest, highest


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


def top_k1_consequences(
    InputTensor: Array,
    OutputValueTensor: Array | None,
    OutputIndexTensor: Array | None,
    Axis: int,
    K: int,
    AxisDirection: str,
) -> Sequence[Consequence]:
    """Return the values of TOP_K that follow from the indices: the elements at these.

    Subnormal elements may count as 0.

    Measured: so it is in lines with a NaN on DirectML 1.8.0, 1.9.1, 1.13.1 and 1.15.4.
    """
    if OutputIndexTensor is None:
        return ()
    indices = np.minimum(OutputIndexTensor, InputTensor.shape[Axis] - 1).astype(np.intp)
    choices = []
    for elements in with_and_without_subnormals(InputTensor):
        values = np.take_along_axis(elements, indices, Axis)
        choices.append([(values, values)])
    return (Consequence("OutputValueTensor", ("OutputIndexTensor",), choices),)


def _element_ranges(numbers: Array, axis: int) -> Iterator[Interval]:
    """Yield each number of sorted lines as an interval, or if lines are long, the whole range."""
    last = np.maximum((~np.isnan(numbers)).sum(axis, keepdims=True) - 1, 0)
    if numbers.shape[axis] > _MOST_NUMBERS:
        yield np.take(numbers, [0], axis), np.take_along_axis(numbers, last, axis)
        return
    for index in range(int(last.max(initial=0)) + 1):
        number = np.take_along_axis(numbers, np.minimum(last, index), axis)
        yield number, number
