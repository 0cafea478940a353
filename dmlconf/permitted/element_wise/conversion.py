"""Permitted results of CAST: candidates for integers of 8 or 16 bits, else an interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.conversion import cast, truncated_to
from dmlconf.tensors.datatypes import Array

__all__ = [
    "cast_candidates",
    "cast_interval",
]


def cast_candidates(InputTensor: Array, OutputTensor: TensorDesc) -> Sequence[Interval]:
    """Return two candidates of a cast to integers of 8 or 16 bits: clamped, and wrapped around.

    300 becomes 255 in UINT8 if it is clamped, and 44 if it wraps around. A float is clamped to 32
    bits before it wraps around: -1.0 becomes 0 in UINT32, and so 0 in UINT8.

    Measured: DirectML clamps.
    """
    target = OutputTensor.DataType.dtype
    clamped = cast(InputTensor, OutputTensor)
    if InputTensor.dtype.kind == "f":
        wide = np.dtype(np.int32 if target.kind == "i" else np.uint32)
        wrapped = truncated_to(InputTensor, wide).astype(target)
    else:
        wrapped = InputTensor.astype(target)
    return [(clamped, clamped), (wrapped, wrapped)]


def cast_interval(InputTensor: Array, OutputTensor: TensorDesc) -> Interval:
    """Return the interval of a cast: rounded toward zero and to nearest, or one number.

    A float in a narrower type, an integer in FLOAT16, and a 64-bit integer in FLOAT32 may be
    rounded in both ways: 2051 in FLOAT16 may be 2050 or 2052. All other casts have only the
    reference's result.

    Source: Direct3D 11.3 functional specification, 3.2.2: floats are narrowed toward zero or to
    nearest, and a 32-bit integer becomes the nearest FLOAT32 number.
    """
    right = cast(InputTensor, OutputTensor)
    return _float_interval(InputTensor, right) if right.dtype.kind == "f" else (right, right)


def _float_interval(tensor: Array, right: Array) -> Interval:
    if right.dtype == np.float64 or (right.dtype == np.float32 and tensor.dtype.itemsize < 8):
        return right, right
    with np.errstate(invalid="ignore"):
        exact = _at_most_53_bits(tensor)
    lowest, highest = rounded_interval(exact, 0.0, right.dtype)
    return np.fmin(lowest, right), np.fmax(highest, right)


def _at_most_53_bits(tensor: Array) -> Array:
    """Return FLOAT64 numbers; integers of more than 53 bits lose their low 11 bits."""
    if tensor.dtype.kind == "f" or tensor.dtype.itemsize < 8:
        return tensor.astype(np.float64)
    negative = tensor < 0
    magnitude = np.where(negative, -tensor, tensor).astype(np.uint64)
    leading = np.where(magnitude >> np.uint64(53) > 0, magnitude & ~np.uint64(0x7FF), magnitude)
    return np.where(negative, -leading.astype(np.float64), leading.astype(np.float64))
