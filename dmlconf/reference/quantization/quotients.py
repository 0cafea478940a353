"""Division of numbers by their scale, and rounding of quotients to quantized integers."""

from __future__ import annotations

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "quantized",
    "single_quotient",
]


def quantized(
    quotient: Array, zero_point: Array | None, data_type: DataType, nan: int | None = None
) -> Array:
    """Return `clamp(round(quotient) + zero_point)` of FLOAT32 quotients, halves rounded to even.

    Args:
        zero_point: broadcasts to the quotients; None is 0.
        data_type: the type to whose range the sum is clamped.
        nan: the result for a NaN quotient; None is the type's least number.
    """
    rounded = np.rint(quotient)
    if zero_point is not None:
        rounded += zero_point.astype(np.float32)
    least, greatest = (end.reduce(rounded, axis=None) for end in (np.minimum, np.maximum))
    if not (data_type.minimum <= least and greatest <= data_type.maximum):
        np.clip(rounded, data_type.minimum, data_type.maximum, out=rounded)
        rounded[np.isnan(rounded)] = data_type.minimum if nan is None else nan
    return rounded.astype(data_type.dtype)


def single_quotient(values: Array, scale: Array) -> Array:
    """Return the FLOAT32 quotient of two tensors, which are first rounded to FLOAT32."""
    with np.errstate(all="ignore"):
        return values.astype(np.float32, copy=False) / scale.astype(np.float32, copy=False)
