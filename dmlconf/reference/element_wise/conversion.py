"""CAST, which converts elements to another data type."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.half import to_float16
from dmlconf.tensors.datatypes import Array

__all__ = [
    "cast",
    "truncated_to",
]


def cast(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT64 to FLOAT16, INT64 to INT8, UINT64 to
    UINT8

    Return each element in the output's data type.

    Floating-point numbers become integers by truncation and clamping; NaN becomes 0. Numbers become
    the nearest floating-point numbers, halves to even, FLOAT16 by way of FLOAT32. Integers wrap
    around in integer outputs of 32 or 64 bits. For integer outputs of 8 or 16 bits, they wrap
    around to 32 bits, signed like the output, and are then clamped.

    Source: measured, since the page of DML_CAST_OPERATOR_DESC does not describe the conversions.
    """
    source, target = InputTensor.dtype, OutputTensor.DataType.dtype
    if source == target:
        return InputTensor.copy()
    if source.kind == "f" and target.kind != "f":
        return in_blocks(lambda elements: truncated_to(elements, target), InputTensor, dtype=target)
    if target.kind == "f":
        with np.errstate(all="ignore"):
            if target == np.float16:
                return in_blocks(_half, InputTensor, dtype=target)
            return InputTensor.astype(target)
    if target.itemsize >= 4:
        return InputTensor.astype(target)
    limits = np.iinfo(target)
    return np.clip(_low_32_bits(InputTensor, target), limits.min, limits.max).astype(target)


def _half(tensor: Array) -> Array:
    return to_float16(tensor.astype(np.float32, copy=False))


def truncated_to(tensor: Array, target: np.dtype[Any]) -> Array:
    """Return floating-point numbers in an integer type: truncated and clamped, NaN as 0."""
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
    # FLOAT64 does not have the largest 64-bit integers.
    result[wide >= float(limits.max)] = limits.max
    result[wide <= float(limits.min)] = limits.min
    return result


def _low_32_bits(tensor: Array, target: np.dtype[Any]) -> Array:
    low = tensor.astype(np.uint32)
    return low.view(np.int32) if target.kind == "i" else low
