"""Operators that take windows of a tensor apart into columns, and add columns up to a tensor.

A tensor {N, C, ...} corresponds to columns {N, C * window, blocks}: each column holds what the
window covers at one place, the channels one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale, quantum_of
from dmlconf.reference.windows.sliding import strided_view
from dmlconf.tensors.datatypes import Array

__all__ = ["fold", "fold_error_scale", "unfold"]


def unfold(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    WindowSizes: Sequence[int],
    Strides: Sequence[int],
    Dilations: Sequence[int],
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> Array:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C * W0 * ..., L}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return what the window covers at every place, as columns; the padding is zero.

    Source: the page of DML_UNFOLD_OPERATOR_DESC.
    """
    padding = [(0, 0), (0, 0), *zip(StartPadding, EndPadding, strict=True)]
    padded = np.pad(InputTensor, padding)
    return _windows(padded, WindowSizes, Strides, Dilations).reshape(OutputTensor.Sizes)


def fold(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    WindowSizes: Sequence[int],
    Strides: Sequence[int],
    Dilations: Sequence[int],
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> Array:
    """InputTensor {N, C * W0 * ..., L} -> OutputTensor {N, C, D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the sum of all columns, each put to where its window is; the padding is dropped.

    Integers of 8 and 16 bits saturate, longer ones wrap around.

    Source: the page of DML_FOLD_OPERATOR_DESC; what integers do was measured.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        wide = InputTensor.astype(_sum_type(dtype), copy=False)
        total = _summed(
            wide, OutputTensor, WindowSizes, Strides, Dilations, StartPadding, EndPadding
        )
        if dtype.kind != "f" and dtype.itemsize < 4:
            limits = np.iinfo(dtype)
            total = np.clip(total, limits.min, limits.max)
        return total.astype(dtype)


def fold_error_scale(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    WindowSizes: Sequence[int],
    Strides: Sequence[int],
    Dilations: Sequence[int],
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> ErrorScale:
    """Return the sum of the absolute values.

    Derived in docs/bounds.md, Sums.
    """
    with np.errstate(all="ignore"):
        wide = np.abs(InputTensor.astype(np.float64))
        sums = _summed(
            wide, OutputTensor, WindowSizes, Strides, Dilations, StartPadding, EndPadding
        )
    return ErrorScale(sums, quantum=quantum_of(InputTensor))


def _sum_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "f":
        return np.dtype(np.float64)
    return np.dtype(np.int64) if dtype.itemsize < 4 else dtype


def _summed(
    columns: Array,
    output: TensorDesc,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start: Sequence[int],
    end: Sequence[int],
) -> Array:
    extents = zip(output.Sizes[2:], start, end, strict=True)
    padded = np.zeros([*output.Sizes[:2], *map(sum, extents)], columns.dtype)
    windows = _windows(padded, window, strides, dilations)
    blocks = columns.reshape(windows.shape)
    for place in np.ndindex(*window):
        # Elements at the same place of all windows are different ones.
        windows[:, :, *place] += blocks[:, :, *place]
    inner = [
        slice(first, first + size) for first, size in zip(start, output.Sizes[2:], strict=True)
    ]
    return padded[:, :, *inner]


def _windows(
    padded: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """Return a view {N, C, window ..., blocks ...} of a tensor {N, C, ...}."""
    spatial = list(zip(padded.shape[2:], window, strides, dilations, strict=True))
    blocks = [
        (size - dilation * (w - 1) - 1) // stride + 1 for size, w, stride, dilation in spatial
    ]
    return strided_view(padded, 2, window, blocks, dilations, strides)
