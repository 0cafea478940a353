"""Operators that take pieces of a tensor, put them back, or reverse them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["reverse_subsequences", "slice1", "slice_grad", "split"]


def slice1(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InputWindowOffsets: Sequence[int],
    InputWindowSizes: Sequence[int],
    InputWindowStrides: Sequence[int],
) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {S0, S1, ...}; FLOAT64 to FLOAT16, INT64 to INT8,
    UINT64 to UINT8

    Return elements of a window at steps of InputWindowStrides. The window has InputWindowSizes
    elements from InputWindowOffsets on. A negative stride starts at the window's end: of [1, 2, 3,
    4, 5], stride -2 picks [5, 3, 1], or only [5, 3] if the output has size 2.

    Source: the page of DML_SLICE1_OPERATOR_DESC.
    """
    window = tuple(
        _window(*each)
        for each in zip(
            OutputTensor.Sizes,
            InputWindowOffsets,
            InputWindowSizes,
            InputWindowStrides,
            strict=True,
        )
    )
    return np.ascontiguousarray(InputTensor[window])


def slice_grad(
    InputGradientTensor: Array,
    OutputGradientTensor: TensorDesc,
    InputWindowOffsets: Sequence[int],
    InputWindowSizes: Sequence[int],
    InputWindowStrides: Sequence[int],
) -> Array:
    """InputGradientTensor {S0, S1, ...} -> OutputGradientTensor {D0, D1, ...}; FLOAT64 to FLOAT16,
    INT64 to INT8, UINT64 to UINT8

    Return zeros, with the gradient written where SLICE1 of the same window would read.

    A gradient larger than the window allows continues outside of the window. Elements that a
    negative stride would write before index 0 are dropped; the catalogue refuses descs that would
    write beyond the output's end.

    Source: the page of DML_SLICE_GRAD_OPERATOR_DESC; larger gradients were measured.
    """
    picked = _picked(
        InputGradientTensor.shape, InputWindowOffsets, InputWindowSizes, InputWindowStrides
    )
    within = [coordinates >= 0 for coordinates in picked]
    chosen = [where[inside] for where, inside in zip(picked, within, strict=True)]
    gradient = np.zeros(OutputGradientTensor.Sizes, InputGradientTensor.dtype)
    gradient[np.ix_(*chosen)] = InputGradientTensor[np.ix_(*within)]
    return gradient


def _picked(
    sizes: Sequence[int], offsets: Sequence[int], extents: Sequence[int], strides: Sequence[int]
) -> list[Array]:
    """Return, along each dimension, the first `sizes` indices that a window picks."""
    return [
        np.arange(size, dtype=np.int64) * stride + _start(offset, extent, stride)
        for size, offset, extent, stride in zip(sizes, offsets, extents, strides, strict=True)
    ]


def _window(size: int, offset: int, extent: int, stride: int) -> slice:
    """Return the slice that reads `size` elements of a window of `extent` elements."""
    start = _start(offset, extent, stride)
    stop = start + size * stride
    return slice(start, stop if stop >= 0 else None, stride)


def _start(offset: int, extent: int, stride: int) -> int:
    """Return where reading begins: at the window's last index if the stride is negative."""
    return offset if stride > 0 else offset + extent - 1


def split(InputTensor: Array, OutputTensors: Sequence[TensorDesc], Axis: int) -> tuple[Array, ...]:
    """InputTensor {D0, ..., A0 + A1 + ..., ...} -> OutputTensors {D0, ..., Ai, ...}; FLOAT64 to
    FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return the input in pieces along an axis.

    Source: the page of DML_SPLIT_OPERATOR_DESC.
    """
    ends = np.cumsum([0, *(tensor.Sizes[Axis] for tensor in OutputTensors)])
    before = (slice(None),) * Axis
    return tuple(
        np.ascontiguousarray(InputTensor[(*before, slice(begin, end))])
        for begin, end in pairwise(ends)
    )


def reverse_subsequences(
    InputTensor: Array, SequenceLengthsTensor: Array, OutputTensor: TensorDesc, Axis: int
) -> Array:
    """InputTensor {D0, ..., A, ...}, SequenceLengthsTensor {D0, ..., 1, ...} ->
    OutputTensor {D0, ..., A, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to UINT8;
    SequenceLengthsTensor: UINT64, UINT32

    Return the input with the first L elements of each row along the axis in reverse order, where L
    is the row's sequence length.

    If L exceeds the size of the axis, reads beyond the last element give that element: [1, 2, 3]
    with L 4 becomes [3, 3, 2]. Only the low 32 bits of L count.

    Source: the page of DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC; lengths beyond the axis and of more
    than 32 bits were measured.
    """
    size = InputTensor.shape[Axis]
    shape = [1] * InputTensor.ndim
    shape[Axis] = size
    indices = np.arange(size, dtype=np.int64).reshape(shape)
    lengths = SequenceLengthsTensor.astype(np.uint32).astype(np.int64)
    sources = np.where(indices < lengths, np.minimum(lengths - 1 - indices, size - 1), indices)
    return np.take_along_axis(InputTensor, sources, Axis)
