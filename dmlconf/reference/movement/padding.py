"""PADDING1, which puts elements around a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.attributes import converted
from dmlconf.tensors.datatypes import Array

__all__ = [
    "padded",
    "padding1",
]


def padding1(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    PaddingMode: str,
    PaddingValueDataType: str,
    PaddingValue: float,
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {S0 + D0 + E0, S1 + D1 + E1, ...}; FLOAT64 to
    FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return the input with elements around it: PaddingValue for CONSTANT, the nearest element of the
    input for EDGE. After [1, 2, 3] comes 2 for REFLECTION, 3 for SYMMETRIC, and 1 for WRAP. The
    padding may be wider than the input: [1, 2] with REFLECTION and an EndPadding of 3 becomes
    [1, 2, 1, 2, 1].

    Source: the page of DML_PADDING1_OPERATOR_DESC; WRAP and the conversion of a PaddingValue that
    does not fit the data type were measured.
    """
    value = converted(PaddingValue, PaddingValueDataType, InputTensor.dtype)
    return padded(InputTensor, PaddingMode, value, StartPadding, EndPadding)


def padded(
    tensor: Array, mode: str, value: Array, start: Sequence[int], end: Sequence[int]
) -> Array:
    """Return the tensor with `start` elements before and `end` elements after it along each axis.

    Args:
        value: the elements of CONSTANT.
    """
    output = np.empty(np.add(tensor.shape, np.add(start, end)), tensor.dtype)
    inner = tuple(np.s_[b : b + size] for b, size in zip(start, tensor.shape, strict=True))
    output[inner] = tensor
    for axis in reversed(range(tensor.ndim)):
        before, size = start[axis], tensor.shape[axis]
        # Later axes are padded already; of earlier axes, only the input's part is filled.
        around = output[inner[:axis]]
        for begin, stop in ((-before, 0), (size, size + end[axis])):
            if begin == stop:
                continue
            outside = (np.s_[:],) * axis + (np.s_[before + begin : before + stop],)
            if mode == "CONSTANT":
                around[outside] = value
            else:
                source = before + _SOURCES[mode](np.arange(begin, stop), size)
                around[outside] = around[(np.s_[:],) * axis + (source,)]
    return output


def _reflected(indices: Array, size: int) -> Array:
    """Mirror at the first and the last element: 1, 2, 3, 2, 1."""
    if size == 1:
        return np.zeros_like(indices)
    around = np.mod(indices, 2 * (size - 1))
    mirrored: Array = np.minimum(around, 2 * (size - 1) - around)
    return mirrored


def _symmetric(indices: Array, size: int) -> Array:
    """Mirror beside the first and the last element: 1, 2, 3, 3, 2, 1."""
    around = np.mod(indices, 2 * size)
    mirrored: Array = np.minimum(around, 2 * size - 1 - around)
    return mirrored


_SOURCES: Final[Mapping[str, Callable[[Array, int], Array]]] = {
    "EDGE": lambda indices, size: np.clip(indices, 0, size - 1),
    "REFLECTION": _reflected,
    "SYMMETRIC": _symmetric,
    "WRAP": np.mod,
}
"""For each mode but CONSTANT, the function that tells which elements to copy.

The function maps indices outside of the input, and the size of the axis, to the indices of the
elements that are copied there.
"""
