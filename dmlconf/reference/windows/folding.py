"""UNFOLD, which copies windows of a tensor to columns, and FOLD, which adds columns up again.

With a window {W0, ...} at L positions, a tensor {N, C, ...} has columns {N, C * W0 * ..., L}. A
column holds what the window covers at one position, one channel after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.windows.sliding import strided_view
from dmlconf.tensors.datatypes import Array

__all__ = [
    "FoldDesc",
    "fold",
    "folded",
    "unfold",
]


@dataclass(frozen=True, slots=True)
class FoldDesc:
    """The fields of DML_FOLD_OPERATOR_DESC and DML_UNFOLD_OPERATOR_DESC."""

    InputTensor: Array
    OutputTensor: TensorDesc
    WindowSizes: Sequence[int]
    Strides: Sequence[int]
    Dilations: Sequence[int]
    StartPadding: Sequence[int]
    EndPadding: Sequence[int]


@of_fields(FoldDesc)
def unfold(desc: FoldDesc) -> Array:
    """InputTensor {N, C, D0, ...} -> OutputTensor {N, C * W0 * ..., L}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return what the window covers at every position, as columns; padding is 0.

    Source: the page of DML_UNFOLD_OPERATOR_DESC.
    """
    padding = [(0, 0), (0, 0), *zip(desc.StartPadding, desc.EndPadding, strict=True)]
    padded = np.pad(desc.InputTensor, padding)
    return _windows(desc, padded).reshape(desc.OutputTensor.Sizes)


@of_fields(FoldDesc)
def fold(desc: FoldDesc) -> Array:
    """InputTensor {N, C * W0 * ..., L} -> OutputTensor {N, C, D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return zeros, to which each column is added at its window's position. Parts in the padding are
    dropped. Integers of 8 and 16 bits saturate, longer ones wrap around.

    Source: the page of DML_FOLD_OPERATOR_DESC; that integers saturate or wrap was measured.
    """
    dtype = desc.OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        wide = desc.InputTensor.astype(_sum_type(dtype), copy=False)
        total = folded(desc, wide)
        if dtype.kind != "f" and dtype.itemsize < 4:
            limits = np.iinfo(dtype)
            total = np.clip(total, limits.min, limits.max)
        return total.astype(dtype)


def _sum_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "f":
        return np.dtype(np.float64)
    return np.dtype(np.int64) if dtype.itemsize < 4 else dtype


def folded(desc: FoldDesc, columns: Array) -> Array:
    """Return columns added up to a tensor of the output's sizes, in the columns' type."""
    sizes, start = desc.OutputTensor.Sizes, desc.StartPadding
    extents = zip(sizes[2:], start, desc.EndPadding, strict=True)
    padded = np.zeros([*sizes[:2], *map(sum, extents)], columns.dtype)
    windows = _windows(desc, padded)
    blocks = columns.reshape(windows.shape)
    for index in np.ndindex(*desc.WindowSizes):
        # Windows may overlap, but no two have the same element of the tensor at one index.
        windows[:, :, *index] += blocks[:, :, *index]
    inner = [slice(first, first + size) for first, size in zip(start, sizes[2:], strict=True)]
    return padded[:, :, *inner]


def _windows(desc: FoldDesc, padded: Array) -> Array:
    """Return a view of a tensor with the axes N, C, those of the window, and those of positions."""
    window, strides, dilations = desc.WindowSizes, desc.Strides, desc.Dilations
    spatial = list(zip(padded.shape[2:], window, strides, dilations, strict=True))
    blocks = [
        (size - dilation * (w - 1) - 1) // stride + 1 for size, w, stride, dilation in spatial
    ]
    return strided_view(padded, 2, window, blocks, dilations, strides)
