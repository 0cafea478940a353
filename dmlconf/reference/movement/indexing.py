"""Operators that read or write the elements that a tensor of indices names.

DirectML computes the offset of an addressed element in unsigned 32-bit arithmetic. It takes the low
32 bits of an index, and adds the size of the axis if the index is negative. Only the offset is
checked, against the size of the whole tensor: in sizes {3, 4}, index 5 of row 0 is element 1 of row
1. A UINT64 index counts as negative from 2^63 on. ONE_HOT and MAX_UNPOOLING use all bits of an
index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import packed_strides

__all__ = [
    "gather",
    "gather_elements",
    "gather_nd1",
    "max_unpooling",
    "one_hot",
    "scatter_elements",
    "scatter_nd",
]


def gather(
    InputTensor: Array,
    IndicesTensor: Array,
    OutputTensor: TensorDesc,
    Axis: int,
    IndexDimensions: int,
) -> Array:
    """InputTensor {D, ..., A, E, ...}, IndicesTensor {1, ..., I, ...} ->
    OutputTensor {D, ..., I, ..., E, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8;
    IndicesTensor: INT64, INT32, UINT64, UINT32

    Return `output[d, ..., i, ..., e, ...] = input[d, ..., indices[i, ...], e, ...]`, where i, ...
    are along the last IndexDimensions dimensions of the indices.

    The other dimensions of the indices have size 1, or the sizes of the input's first dimensions if
    each batch has its own indices. If the output has more dimensions than the result, the first
    ones have size 1. If it has fewer, it gets the part at index 0 of the result's surplus leading
    dimensions. Reads outside of the input give its last element. If the output has more elements
    than the result, as with IndexDimensions 0, the rest are the input's last element.

    Source: the page of DML_GATHER_OPERATOR_DESC; leading dimensions other than of size 1,
    dimensions that do not fit, and reads out of range were measured.
    """
    first_used = IndicesTensor.ndim - IndexDimensions
    used = IndicesTensor.shape[first_used:]
    batch = _without_leading_ones(IndicesTensor.shape[:first_used])
    indices = _counted_from_start(IndicesTensor, InputTensor.shape[Axis])
    if not batch and (indices < InputTensor.shape[Axis]).all():
        output = np.take(InputTensor, indices.reshape(used), Axis)
    else:
        offsets = _gathered_offsets(InputTensor.shape, Axis, indices, batch, used)
        output = InputTensor.reshape(-1).take(offsets, mode="clip")
    aligned = _right_aligned(output, OutputTensor.DimensionCount)
    beyond = OutputTensor.ElementCount - aligned.size
    if beyond <= 0:
        return aligned
    return np.concatenate([aligned.reshape(-1), np.repeat(InputTensor.reshape(-1)[-1:], beyond)])


def _gathered_offsets(
    sizes: tuple[int, ...],
    axis: int,
    indices: Array,
    batch: tuple[int, ...],
    used: tuple[int, ...],
) -> Array:
    """Return the offset of each element that GATHER reads, as UINT32.

    Args:
        indices: the indices, counted from the start of the axis.
        batch: sizes of the leading dimensions that have indices of their own.
        used: sizes of the dimensions of the indices that IndexDimensions counts.
    """
    before, after = sizes[:axis], sizes[axis + 1 :]
    leading = len(before) - len(_without_leading_ones(before)) if batch else 0
    own = (1,) * leading + batch + (1,) * (axis - leading - len(batch))
    rows = np.arange(math.prod(before), dtype=np.uint32).reshape(before + (1,) * len(used))
    columns = np.arange(math.prod(after), dtype=np.uint32)
    positions = rows * np.uint32(sizes[axis]) + indices.reshape(own + used)
    offsets = positions[..., np.newaxis] * np.uint32(columns.size) + columns
    return offsets.reshape(before + used + after)


def gather_elements(
    InputTensor: Array, IndicesTensor: Array, OutputTensor: TensorDesc, Axis: int
) -> Array:
    """InputTensor {D0, ..., A, ...}, IndicesTensor {D0, ..., I, ...} ->
    OutputTensor {D0, ..., I, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8;
    IndicesTensor: INT64, INT32, UINT64, UINT32

    Return, for the last of three axes, `output[i, j, k] = input[i, j, indices[i, j, k]]`. Reads
    outside of the input give its last element.

    Source: the page of DML_GATHER_ELEMENTS_OPERATOR_DESC; reads out of range were measured.
    """
    flat, strides = InputTensor.reshape(-1), packed_strides(InputTensor.shape)

    def gathered(indices: Array, others: Array) -> Array:
        counted = _counted_from_start(indices, InputTensor.shape[Axis])
        offsets = counted * np.uint32(strides[Axis]) + others
        return flat.take(offsets.astype(np.intp), mode="clip")

    others = _offsets_without(Axis, IndicesTensor.shape, strides)
    return in_slices(gathered, IndicesTensor, others, dtype=InputTensor.dtype)


def gather_nd1(
    InputTensor: Array,
    IndicesTensor: Array,
    OutputTensor: TensorDesc,
    InputDimensionCount: int,
    IndicesDimensionCount: int,
    BatchDimensionCount: int,
) -> Array:
    """InputTensor {B, ..., D1, ..., DT, S, ...}, IndicesTensor {B, ..., I, ..., T} ->
    OutputTensor {B, ..., I, ..., S, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8;
    IndicesTensor: INT64, INT32, UINT64, UINT32

    Return the blocks {S, ...} of the input that tuples of T indices name, each batch from its own
    part of the input. BatchDimensionCount is the number of dimensions `B, ...`.

    The shapes above omit leading dimensions of size 1, which InputDimensionCount and
    IndicesDimensionCount do not count. Reads outside of the input give its last element.

    Source: the page of DML_GATHER_ND1_OPERATOR_DESC; reads out of range were measured.
    """
    sizes = InputTensor.shape[InputTensor.ndim - InputDimensionCount :]
    tuples = IndicesTensor.reshape(
        IndicesTensor.shape[IndicesTensor.ndim - IndicesDimensionCount :]
    )
    offsets = _block_offsets(sizes, tuples, BatchDimensionCount)
    return InputTensor.reshape(-1).take(offsets, mode="clip").reshape(OutputTensor.Sizes)


def scatter_nd(
    InputTensor: Array,
    IndicesTensor: Array,
    UpdatesTensor: Array,
    OutputTensor: TensorDesc,
    InputDimensionCount: int,
    IndicesDimensionCount: int,
) -> Array:
    """InputTensor {D1, ..., DT, S, ...}, IndicesTensor {I, ..., T}, UpdatesTensor {I, ..., S, ...}
    -> OutputTensor {D1, ..., DT, S, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8;
    IndicesTensor: INT64, INT32, UINT64, UINT32

    Return the input, where updates replace the blocks {S, ...} that tuples of T indices name.

    The shapes above omit leading dimensions of size 1, which InputDimensionCount and
    IndicesDimensionCount do not count. Writes outside of the output are dropped. If several updates
    name one element, it is not defined which one counts; here it is the last.

    Source: the page of DML_SCATTER_ND_OPERATOR_DESC; writes out of range were measured.
    """
    sizes = InputTensor.shape[InputTensor.ndim - InputDimensionCount :]
    tuples = IndicesTensor.reshape(
        IndicesTensor.shape[IndicesTensor.ndim - IndicesDimensionCount :]
    )
    offsets = _block_offsets(sizes, tuples, 0).reshape(-1)
    output = InputTensor.copy().reshape(-1)
    _write(output, offsets, UpdatesTensor.reshape(-1))
    return output.reshape(InputTensor.shape)


def _block_offsets(sizes: Sequence[int], tuples: Array, batch: int) -> Array:
    """Return the offset of each element of the blocks that tuples of indices name, UINT32.

    A tuple lies along the last dimension of `tuples`. The tensor and the indices share their first
    `batch` dimensions.
    """
    count = tuples.shape[-1]
    strides = packed_strides(sizes)
    offsets = np.zeros(tuples.shape[:-1], np.uint32)
    for axis, coordinate in enumerate(np.indices(tuples.shape[:batch], np.uint32)):
        own = coordinate.reshape(coordinate.shape + (1,) * (offsets.ndim - batch))
        offsets += own * np.uint32(strides[axis])
    for part in range(count):
        index = _counted_from_start(tuples[..., part], sizes[batch + part])
        offsets += index * np.uint32(strides[batch + part])
    block = np.arange(math.prod(sizes[batch + count :]), dtype=np.uint32)
    result: Array = offsets[..., np.newaxis] + block
    return result


def max_unpooling(InputTensor: Array, IndicesTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {N, C, H, W}, IndicesTensor {N, C, H, W} -> OutputTensor {ON, OC, OH, OW};
    FLOAT32, FLOAT16, INT64 to INT8, UINT64 to UINT8; IndicesTensor: UINT64, UINT32

    Return zeros, with each element of the input at its index in the flat output. Elements with an
    index beyond the output are dropped. If several have one index, it is not defined which one
    counts; here it is the last in row-major order.

    Source: the page of DML_MAX_UNPOOLING_OPERATOR_DESC; indices out of range were measured.
    """
    output = np.zeros(math.prod(OutputTensor.Sizes), OutputTensor.DataType.dtype)
    _write(output, IndicesTensor, InputTensor)
    return output.reshape(OutputTensor.Sizes)


def one_hot(
    IndicesTensor: Array, ValuesTensor: Array, OutputTensor: TensorDesc, Axis: int
) -> Array:
    """IndicesTensor {D0, ..., 1, ...}, ValuesTensor {V0, ...} -> OutputTensor {D0, ..., A, ...};
    FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8; IndicesTensor: INT64, INT32, UINT64, UINT32

    Return the second value where the position along the axis is the index, else the first value.

    A negative index counts from the end. An index out of range selects nothing, even if its low 32
    bits are in range.

    Source: the page of DML_ONE_HOT_OPERATOR_DESC: an index that exceeds the number of elements
    along the axis "is ignored".
    """
    size = OutputTensor.Sizes[Axis]
    shape = [1] * IndicesTensor.ndim
    shape[Axis] = size
    each = np.arange(size, dtype=np.uint32).reshape(shape)
    off, on = ValuesTensor.reshape(-1)[:2]
    hit = IndicesTensor == each
    if IndicesTensor.dtype.kind == "i":
        hit |= IndicesTensor == each.astype(np.int64) - size
    chosen: Array = np.where(hit, on, off)
    return chosen


def scatter_elements(
    InputTensor: Array,
    IndicesTensor: Array,
    UpdatesTensor: Array,
    OutputTensor: TensorDesc,
    Axis: int,
) -> Array:
    """InputTensor {D0, ..., A, ...}, IndicesTensor {D0, ..., I, ...},
    UpdatesTensor {D0, ..., I, ...} -> OutputTensor {D0, ..., A, ...}; FLOAT64 to FLOAT16, INT64 to
    INT8, UINT64 to UINT8; IndicesTensor: INT64, INT32, UINT64, UINT32

    Return the input with, for the last of three axes,
    `output[i, j, indices[i, j, k]] = updates[i, j, k]`.

    Writes outside of the output are dropped; along an axis of size 1 every index counts as 0. If
    several updates name one element, it is not defined which one counts; here it is the last.

    Source: the page of DML_SCATTER_OPERATOR_DESC; writes out of range were measured.
    """
    packed = zip(InputTensor.shape, packed_strides(InputTensor.shape), strict=True)
    strides = [stride if size > 1 else 0 for size, stride in packed]

    def addressed(indices: Array, others: Array) -> Array:
        counted = _counted_from_start(indices, InputTensor.shape[Axis])
        return counted * np.uint32(strides[Axis]) + others

    others = _offsets_without(Axis, IndicesTensor.shape, strides)
    offsets = in_slices(addressed, IndicesTensor, others, dtype=np.dtype(np.intp))
    output = InputTensor.copy().reshape(-1)
    _write(output, offsets, UpdatesTensor)
    return output.reshape(InputTensor.shape)


def _offsets_without(axis: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """Return the offset of each element without the term of `axis`, UINT32."""
    offsets = np.zeros((1,) * len(sizes), np.uint32)
    for other, coordinate in enumerate(np.indices(sizes, np.uint32, sparse=True)):
        if other != axis:
            offsets = offsets + coordinate * np.uint32(strides[other])
    return offsets


def _write(output: Array, offsets: Array, updates: Array) -> None:
    inside = offsets < output.size
    if not inside.all():
        offsets, updates = offsets[inside], updates[inside]
    # The last of several updates with one offset stays.
    output[offsets.reshape(-1)] = updates.reshape(-1)


def _counted_from_start(indices: Array, axis_size: int) -> Array:
    """Return indices as UINT32, with the axis size added to the negative ones."""
    if indices.dtype == np.uint32:
        return indices
    low = indices.astype(np.uint32)
    negative = indices >= np.uint64(1 << 63) if indices.dtype == np.uint64 else indices < 0
    return low + negative * np.uint32(axis_size)


def _without_leading_ones(sizes: Sequence[int]) -> tuple[int, ...]:
    larger = [dimension for dimension, size in enumerate(sizes) if size != 1]
    return tuple(sizes[larger[0] :]) if larger else ()


def _right_aligned(tensor: Array, dimension_count: int) -> Array:
    """Return the tensor with leading sizes 1, or its part at index 0 of surplus leading axes."""
    surplus = tensor.ndim - dimension_count
    if surplus <= 0:
        return tensor.reshape((1,) * -surplus + tensor.shape)
    cut: Array = tensor[(0,) * surplus]
    return cut
