"""Operators that give the same numbers in another data type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.half import to_float16
from dmlconf.reference.numbers.rounding import rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = ["cast", "cast_candidates", "cast_interval"]


def cast(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to
    UINT8

    Return each element in the output's data type.

    Floating-point numbers lose their fraction on the way to integers, those out of range become
    the nearest integer of the type, and NaN becomes 0. Integers are rounded to nearest even on
    the way to floating-point numbers. Integers of 32 and 64 bits wrap around; for 8 and 16 bits the
    low 32 bits are taken for an integer with the output's sign, and clamped.

    Source: the page of DML_CAST_OPERATOR_DESC does not say; measured.
    """
    source, target = InputTensor.dtype, OutputTensor.DataType.dtype
    if source == target:
        return InputTensor.copy()
    if source.kind == "f" and target.kind != "f":
        return in_blocks(lambda elements: _truncated(elements, target), InputTensor, dtype=target)
    if target.kind == "f":
        with np.errstate(all="ignore"):
            if target == np.float16:
                return in_blocks(_half, InputTensor, dtype=target)
            return InputTensor.astype(target)
    if target.itemsize >= 4:
        return InputTensor.astype(target)
    limits = np.iinfo(target)
    return np.clip(_low_32_bits(InputTensor, target), limits.min, limits.max).astype(target)


def cast_candidates(InputTensor: Array, OutputTensor: TensorDesc) -> Sequence[Interval]:
    """Return what a conversion to 8 or 16 bits gives that clamps, and what one gives that wraps.

    Source: measured is a clamp; whether a store of 8 or 16 bits clamps depends on how the kernel
    stores.
    """
    target = OutputTensor.DataType.dtype
    clamped = cast(InputTensor, OutputTensor)
    if InputTensor.dtype.kind == "f":
        wide = np.dtype(np.int32 if target.kind == "i" else np.uint32)
        wrapped = _truncated(InputTensor, wide).astype(target)
    else:
        wrapped = InputTensor.astype(target)
    return [(clamped, clamped), (wrapped, wrapped)]


def cast_interval(InputTensor: Array, OutputTensor: TensorDesc) -> Interval:
    """Return what a conversion to a floating-point type gives that rounds either way.

    Source: Direct3D 11.3 functional specification, 3.2.2: a float becomes a narrower float by
    rounding toward zero, or to nearest.
    """
    right = cast(InputTensor, OutputTensor)
    return _float_interval(InputTensor, right) if right.dtype.kind == "f" else (right, right)


def _float_interval(tensor: Array, right: Array) -> tuple[Array, Array]:
    if right.dtype == np.float64 or (right.dtype == np.float32 and tensor.dtype.itemsize < 8):
        return right, right
    with np.errstate(invalid="ignore"):
        exact = _at_most_53_bits(tensor)
    lowest, highest = rounded_interval(exact, 0.0, right.dtype)
    return np.fmin(lowest, right), np.fmax(highest, right)


def _at_most_53_bits(tensor: Array) -> Array:
    """Return FLOAT64 numbers; 64-bit integers lose the bits that FLOAT64 has no room for."""
    if tensor.dtype.kind == "f" or tensor.dtype.itemsize < 8:
        return tensor.astype(np.float64)
    negative = tensor < 0
    magnitude = np.where(negative, -tensor, tensor).astype(np.uint64)
    leading = np.where(magnitude >> np.uint64(53) > 0, magnitude & ~np.uint64(0x7FF), magnitude)
    return np.where(negative, -leading.astype(np.float64), leading.astype(np.float64))


def _half(tensor: Array) -> Array:
    return to_float16(tensor.astype(np.float32, copy=False))


def _truncated(tensor: Array, target: np.dtype[Any]) -> Array:
    """Return floating-point numbers without their fraction, clamped to an integer type."""
    limits = np.iinfo(target)
    with np.errstate(all="ignore"):
        least, greatest = (end.reduce(tensor, axis=None) for end in (np.minimum, np.maximum))
        if limits.min - 1 < least and greatest < limits.max:
            return tensor.astype(target)
        wide = tensor.astype(np.float64)
        wide[np.isnan(wide)] = 0
        if target.itemsize < 8:
            return np.clip(wide, limits.min, limits.max, out=wide).astype(target)
        result = wide.astype(target)
    # FLOAT64 has no number for the largest 64-bit integers, so clamping is left to the integers.
    result[wide >= float(limits.max)] = limits.max
    result[wide <= float(limits.min)] = limits.min
    return result


def _low_32_bits(tensor: Array, target: np.dtype[Any]) -> Array:
    low = tensor.astype(np.uint32)
    return low.view(np.int32) if target.kind == "i" else low
