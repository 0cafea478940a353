"""Operators that put elements around a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["padding", "padding1"]


def padding(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    PaddingMode: str,
    PaddingValue: float,
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> Array:
    """Return the input with elements around it.

    The value of an integer tensor is truncated, and its low bits are taken.

    Source: the page of DML_PADDING_OPERATOR_DESC; values that do not fit were measured.
    """
    with np.errstate(over="ignore"):
        value: float | int = float(np.float32(PaddingValue))
    if InputTensor.dtype.kind != "f":
        whole = math.trunc(value) if math.isfinite(value) else 0
        value = whole & (1 << 8 * InputTensor.itemsize) - 1
        bits = np.array(value, f"u{InputTensor.itemsize}")
        return _padded(
            InputTensor, PaddingMode, bits.view(InputTensor.dtype), StartPadding, EndPadding
        )
    return padding1(InputTensor, OutputTensor, PaddingMode, "", value, StartPadding, EndPadding)


def padding1(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    PaddingMode: str,
    PaddingValueDataType: str,
    PaddingValue: float,
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
) -> Array:
    """Return the input with elements around it.

    Mirrored and repeated elements go on beyond the size of the input.

    Source: the page of DML_PADDING1_OPERATOR_DESC; WRAP was measured.
    """
    with np.errstate(over="ignore"):
        value = np.array(PaddingValue).astype(InputTensor.dtype)
    return _padded(InputTensor, PaddingMode, value, StartPadding, EndPadding)


def _padded(
    tensor: Array, mode: str, value: Array, start: Sequence[int], end: Sequence[int]
) -> Array:
    if mode == "CONSTANT":
        sizes = [b + size + e for b, size, e in zip(start, tensor.shape, end, strict=True)]
        output = np.full(sizes, value, tensor.dtype)
        inner = tuple(np.s_[b : b + size] for b, size in zip(start, tensor.shape, strict=True))
        output[inner] = tensor
        return output
    sources = [
        _SOURCES[mode](np.arange(-b, size + e), size)
        for b, size, e in zip(start, tensor.shape, end, strict=True)
    ]
    output = tensor
    for axis, (places, before) in enumerate(zip(sources, start, strict=True)):
        behind = before + tensor.shape[axis]
        if len(places) > tensor.shape[axis]:
            around = (output.take(part, axis) for part in (places[:before], places[behind:]))
            output = np.concatenate([next(around), output, next(around)], axis)
    return output.copy() if output is tensor else output


def _reflected(places: Array, size: int) -> Array:
    """Mirror at the first and the last element, which are not repeated."""
    if size == 1:
        return np.zeros_like(places)
    around = np.mod(places, 2 * (size - 1))
    mirrored: Array = np.minimum(around, 2 * (size - 1) - around)
    return mirrored


def _symmetric(places: Array, size: int) -> Array:
    """Mirror at the edges, so that the first and the last element are repeated."""
    around = np.mod(places, 2 * size)
    mirrored: Array = np.minimum(around, 2 * size - 1 - around)
    return mirrored


_SOURCES: Final[Mapping[str, Callable[[Array, int], Array]]] = {
    "EDGE": lambda places, size: np.clip(places, 0, size - 1),
    "REFLECTION": _reflected,
    "SYMMETRIC": _symmetric,
    "WRAP": np.mod,
}
"""Which element each place along an axis has, by mode."""
