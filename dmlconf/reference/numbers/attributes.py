"""Convert attributes of descs to a tensor's data type: FLOAT32 to an integer by a C cast.

C does not define the result for a number beyond the integer type, such as 300 for UINT8, so
processors and compilers differ. Measured: DirectML 1.15.4, 1.13.1 and 1.8.0 on x86-64 convert
attributes of PADDING and of DIAGONAL_MATRIX as `converted` does.

Sources: ISO C 6.3.1.4; Intel 64 manual, CVTTSS2SI and, with AVX-512, VCVTTSS2USI; Arm architecture
reference manual, FCVTZS and FCVTZU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "converted",
    "low_bits",
]


def converted(value: float, data_type: str, dtype: np.dtype[Any]) -> Array:
    """Return an attribute in a tensor's data type, as an array without dimensions.

    FLOAT32 becomes an integer as in DirectML on x86-64: for UINT8, 300.5 becomes 44, and NaN 0.

    Args:
        data_type: the attribute's own type: "FLOAT32", or the type of the tensor.
    """
    if data_type == "FLOAT32":
        value = single(value)
        if dtype.kind != "f":
            return low_bits(_by_x86_64(value, dtype), dtype)
    with np.errstate(over="ignore"):
        return np.array(value).astype(dtype)


def _by_x86_64(value: float, dtype: np.dtype[Any]) -> int:
    """Return the integer to which DirectML converts a number on x86-64.

    The range is -2^63 to 2^64 - 1 for UINT64, that of INT64 for INT64 and UINT32, else that of
    INT32. Numbers beyond the range, infinity and NaN become the lowest integer of the range.
    """
    limit = 1 << (63 if dtype.itemsize == 8 or dtype == np.uint32 else 31)
    whole = math.trunc(value) if math.isfinite(value) else -limit
    fits = -limit <= whole < (2 * limit if dtype == np.uint64 else limit)
    return whole if fits else -limit


def low_bits(number: int, dtype: np.dtype[Any]) -> Array:
    """Return the integer of a type whose bits are the lowest bits of a number."""
    bits = number & (1 << 8 * dtype.itemsize) - 1
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)
