"""Operators that put elements around a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = ["padding1"]


def _converted(value: float, dtype: np.dtype[Any]) -> int:
    """Return the integer to which x64 converts a real number before it takes the low bits.

    It has 64 bits for UINT32 and longer types, 32 for the others. What it does not hold, infinity
    and NaN become its lowest number; UINT64 holds the numbers up to 2^64 as well.
    """
    limit = 1 << (63 if dtype.itemsize == 8 or dtype == np.uint32 else 31)
    whole = math.trunc(value) if math.isfinite(value) else -limit
    fits = -limit <= whole < (2 * limit if dtype == np.uint64 else limit)
    return whole if fits else -limit


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

    Return the input with elements around it.

    Mirrored and repeated elements continue beyond the size of the input.

    Source: the page of DML_PADDING1_OPERATOR_DESC; WRAP, and FLOAT32 values that do not fit, as
    PADDING has them, were measured.
    """
    value = _held(PaddingValue, PaddingValueDataType, InputTensor.dtype)
    return _padded(InputTensor, PaddingMode, value, StartPadding, EndPadding)


def _held(value: float, data_type: str, dtype: np.dtype[Any]) -> Array:
    """Return a number as stored in a tensor.

    A FLOAT32 in an integer tensor is truncated, as x64 does it, and its low bits are taken.
    """
    if data_type == "FLOAT32":
        value = single(value)
        if dtype.kind != "f":
            low_bits = _converted(value, dtype) & (1 << 8 * dtype.itemsize) - 1
            return np.array(low_bits, f"u{dtype.itemsize}").view(dtype)
    with np.errstate(over="ignore"):
        return np.array(value).astype(dtype)


def _padded(
    tensor: Array, mode: str, value: Array, start: Sequence[int], end: Sequence[int]
) -> Array:
    output = np.empty(np.add(tensor.shape, np.add(start, end)), tensor.dtype)
    inner = tuple(np.s_[b : b + size] for b, size in zip(start, tensor.shape, strict=True))
    output[inner] = tensor
    for axis in reversed(range(tensor.ndim)):
        before, size = start[axis], tensor.shape[axis]
        # What is outside along this axis, and along later ones within or outside.
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
