"""Operators that pick elements by their value: NONZERO_COORDINATES and TOP_K1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array

__all__ = [
    "TopK1Desc",
    "first_elements",
    "nonzero_coordinates",
    "top_k1",
]


def nonzero_coordinates(
    InputTensor: Array, OutputCountTensor: TensorDesc, OutputCoordinatesTensor: TensorDesc
) -> tuple[Array, Array]:
    """InputTensor {D0, D1, ...} -> OutputCountTensor {1, ...},
    OutputCoordinatesTensor {1, ..., D0 * D1 * ..., R}; UINT32; InputTensor: FLOAT32, FLOAT16, INT32
    to INT8, UINT32 to UINT8

    Return how many elements are not zero, and their coordinates in row-major order. NaN is not
    zero; -0 is.

    If R, the number of columns, is less than the input's number of dimensions, each row holds the
    last R coordinates. Further rows are undefined; here they are zero.

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

    Return the K largest elements along the axis in decreasing order, and their indices. With
    INCREASING, return the K smallest in increasing order.

    Of equal elements, such as 0 and -0, the one with the lower index comes first. NaN counts as the
    largest, since the page says nothing of it.

    Source: the page of DML_TOP_K1_OPERATOR_DESC.
    """
    return first_elements(desc)


def first_elements(desc: TopK1Desc) -> tuple[Array, Array]:
    """Return the values and the indices that `top_k1` returns."""
    indices = _indices(desc.InputTensor, desc.Axis, desc.K, desc.AxisDirection == "DECREASING")
    values = np.take_along_axis(desc.InputTensor, indices, desc.Axis)
    return values, indices.astype(desc.OutputIndexTensor.DataType.dtype)


_HALF_OF_KEY: Final = 4
"""Elements of at most this many bytes are sorted with their indices, as 64-bit keys."""


def _indices(tensor: Array, axis: int, count: int, decreasing: bool) -> Array:
    """Return the indices of the `count` first elements in order; of equal ones the lowest first."""
    size = tensor.shape[axis]
    if tensor.itemsize <= _HALF_OF_KEY:
        shape = [-1 if dimension == axis else 1 for dimension in range(tensor.ndim)]
        each = np.arange(size).reshape(shape)

        def indices_of(part: Array) -> Array:
            # Sorting keys that hold the index takes a fraction of the time of `argsort`.
            keys = ~_order(part) if decreasing else _order(part)
            keys <<= 32
            keys |= each
            keys.partition(count - 1, axis)
            least = np.take(keys, np.arange(count), axis)
            least.sort(axis)
            return least & 0xFFFFFFFF

        return in_slices(indices_of, tensor, dtype=np.dtype(np.int64), together=(axis,))
    if decreasing:
        # Flipping before the stable sort and after it keeps equal elements in order.
        backward = np.argsort(np.flip(tensor, axis), axis, kind="stable")
        indices = np.flip(size - 1 - backward, axis)
    else:
        indices = np.argsort(tensor, axis, kind="stable")
    return np.take(indices, np.arange(count), axis)


def _order(tensor: Array) -> Array:
    """Return INT64 numbers in the INT32 range, ordered as the elements; NaN is last, -0 is +0."""
    if tensor.dtype.kind != "f":
        least = np.iinfo(np.int32).min if tensor.dtype == np.uint32 else 0
        return tensor.astype(np.int64) + least
    with np.errstate(invalid="ignore"):
        values = tensor.astype(np.float32) + np.float32(0)
    np.copyto(values, np.nan, where=np.isnan(values))
    bits = values.view(np.int32)
    # The bits of negative numbers are in reverse order.
    bits ^= bits >> 31 & np.iinfo(np.int32).max
    return bits.astype(np.int64)
