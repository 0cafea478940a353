"""Operators that take a tensor apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["slice", "slice1", "split"]


def slice(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    Offsets: Sequence[int],
    Sizes: Sequence[int],
    Strides: Sequence[int],
) -> Array:
    """Return every n-th element, from an offset on, along each dimension.

    Source: the page of DML_SLICE_OPERATOR_DESC.
    """
    picked = [
        np.arange(size, dtype=np.int64) * stride + offset
        for offset, size, stride in zip(Offsets, Sizes, Strides, strict=True)
    ]
    return InputTensor[np.ix_(*picked)]


def slice1(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    InputWindowOffsets: Sequence[int],
    InputWindowSizes: Sequence[int],
    InputWindowStrides: Sequence[int],
) -> Array:
    """Return every n-th element of a window; a negative stride begins at the window's end.

    The output may be smaller than the window allows.

    Source: the page of DML_SLICE1_OPERATOR_DESC.
    """
    windows = zip(
        OutputTensor.Sizes, InputWindowOffsets, InputWindowSizes, InputWindowStrides, strict=True
    )
    picked = [
        np.arange(size, dtype=np.int64) * stride + (offset if stride > 0 else offset + extent - 1)
        for size, offset, extent, stride in windows
    ]
    return InputTensor[np.ix_(*picked)]


def split(InputTensor: Array, OutputTensors: Sequence[TensorDesc], Axis: int) -> tuple[Array, ...]:
    """Return the input in pieces along an axis.

    Source: the page of DML_SPLIT_OPERATOR_DESC.
    """
    ends = np.cumsum([0, *(tensor.Sizes[Axis] for tensor in OutputTensors)])
    return tuple(np.take(InputTensor, np.arange(begin, end), Axis) for begin, end in pairwise(ends))
