"""MODULUS_TRUNCATE and MODULUS_FLOOR: remainders of divisions."""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.floats import narrowed, wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = [
    "LEAST_QUOTIENT",
    "element_wise_modulus_floor",
    "element_wise_modulus_truncate",
]

LEAST_QUOTIENT: Final = LEAST_NORMAL_FLOAT32
"""A quotient of smaller magnitude may be subnormal in FLOAT32, and hardware may flush it to 0."""

_LARGE_QUOTIENT: Final = 2.0**28
"""A FLOAT64 quotient of smaller magnitude is accurate enough to be rounded to an integer."""


def element_wise_modulus_truncate(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a - b * trunc(a / b)`: a remainder with the sign of the dividend, or +0. For a
    floating-point divisor that is zero or infinite, the remainder is NaN.

    Unsigned integers divided by zero give the greatest number of their type, and INT64 gives -1.
    Other signed integers give the dividend.

    Source: the page of DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC; division by zero was
    measured.
    """
    if ATensor.dtype.kind == "f":
        return narrowed(_float_remainder(ATensor, BTensor, np.fmod, np.trunc), ATensor.dtype)
    remainder = _integer_remainder(ATensor, BTensor, np.fmod)
    if ATensor.dtype.kind == "i" and ATensor.dtype.itemsize < 8:
        by_zero = BTensor == 0
        remainder[by_zero] = ATensor[by_zero]
    return remainder


def element_wise_modulus_floor(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a - b * floor(a / b)`: a remainder with the sign of the divisor, or +0. For a
    floating-point divisor that is zero or infinite, the remainder is NaN. Where FLOAT32 rounds the
    quotient to 0, the remainder is the dividend, whatever its sign.

    Unsigned integers divided by zero give the greatest number of their type. Signed integers give
    -1, but the lowest INT32, INT16 and INT8 give 1.

    Source: the page of DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC; division by zero was measured.
    """
    if ATensor.dtype.kind == "f":
        return narrowed(_float_remainder(ATensor, BTensor, np.remainder, np.floor), ATensor.dtype)
    remainder = _integer_remainder(ATensor, BTensor, np.remainder)
    if ATensor.dtype.kind == "i" and ATensor.dtype.itemsize < 8:
        remainder[(BTensor == 0) & (ATensor == np.iinfo(ATensor.dtype).min)] = 1
    return remainder


def _float_remainder(
    dividend: Array, divisor: Array, operation: np.ufunc, rounding: np.ufunc
) -> Array:
    """Return `a - b * rounding(a / b)` in FLOAT64; NaN if the divisor is infinite, and never -0.

    Measured on DirectML 1.8.0 and 1.15.4: a quotient that FLOAT32 rounds to 0 counts as 0.

    Args:
        operation: NumPy's remainder, slower but exact for large quotients.
    """
    a, b = wide(dividend), wide(divisor)
    with np.errstate(all="ignore"):
        quotient = a / b
        small = np.abs(quotient) < LEAST_QUOTIENT
        quotient[small] = quotient[small].astype(np.float32)
        remainder: Array = a - b * rounding(quotient) + 0.0
        large = np.abs(quotient) >= _LARGE_QUOTIENT
        if large.any():
            remainder[large] = operation(a[large], b[large]) + 0.0
        remainder[np.isinf(b)] = np.nan
    return remainder


def _integer_remainder(dividend: Array, divisor: Array, operation: np.ufunc) -> Array:
    """Return remainders of integers; a division by zero sets all bits."""
    with np.errstate(all="ignore"):
        remainder: Array = operation(dividend, divisor)
    remainder[divisor == 0] = -1 if dividend.dtype.kind == "i" else np.iinfo(dividend.dtype).max
    return remainder
