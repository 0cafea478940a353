"""Remainders of divisions, with the sign of the dividend or of the divisor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.arithmetic import LARGEST_DIVISOR
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_modulus_floor",
    "element_wise_modulus_floor_candidates",
    "element_wise_modulus_truncate",
    "element_wise_modulus_truncate_candidates",
]

_QUOTIENT: Final = 3 * STEP
"""The relative error of a quotient made as a product with a reciprocal."""

_LARGEST_MULTIPLE: Final = 2.0**22
"""Measured on DirectML 1.15.4: below this the remainders of exact multiples are 0."""

_LEAST_QUOTIENT: Final = float(np.finfo(np.float32).tiny)
"""Below this a quotient is subnormal in FLOAT32, and may be flushed."""

_LARGE_QUOTIENT: Final = 2.0**28
"""Below this FLOAT64 holds quotients of FLOAT32 numbers well enough to round them."""


def element_wise_modulus_truncate(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the remainder with the sign of the dividend, as C has it.

    An integer modulo zero is the greatest UINT, or the dividend, and of INT64 -1.

    Source: the page of DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC; what it leaves open was
    measured.
    """
    if ATensor.dtype.kind == "f":
        return _narrowed(_float_remainder(ATensor, BTensor, np.fmod, np.trunc), ATensor.dtype)
    remainder = _integer_remainder(ATensor, BTensor, np.fmod)
    if ATensor.dtype.kind == "i" and ATensor.dtype.itemsize < 8:
        by_zero = BTensor == 0
        remainder[by_zero] = ATensor[by_zero]
    return remainder


def element_wise_modulus_truncate_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[tuple[Array, Array]]:
    """Return the remainder of a quotient that FLOAT32 holds, and any integer where it is undefined.

    Source: Direct3D 11.3 functional specification, as for quotients.
    """
    if ATensor.dtype.kind == "f":
        return _float_candidates(ATensor, BTensor, np.trunc, ATensor.dtype)
    return _integer_candidates(
        element_wise_modulus_truncate(ATensor, BTensor, OutputTensor), ATensor, BTensor
    )


def element_wise_modulus_floor(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the remainder with the sign of the divisor, as Python has it.

    An integer modulo zero is the greatest UINT, or -1, and the smallest one 1 but of INT64.

    Source: the page of DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC; what it leaves open was
    measured.
    """
    if ATensor.dtype.kind == "f":
        return _narrowed(_float_remainder(ATensor, BTensor, np.remainder, np.floor), ATensor.dtype)
    remainder = _integer_remainder(ATensor, BTensor, np.remainder)
    if ATensor.dtype.kind == "i" and ATensor.dtype.itemsize < 8:
        remainder[(BTensor == 0) & (ATensor == np.iinfo(ATensor.dtype).min)] = 1
    return remainder


def element_wise_modulus_floor_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[tuple[Array, Array]]:
    """Return the remainder of a quotient that FLOAT32 holds, and any integer where it is undefined.

    Source: Direct3D 11.3 functional specification, as for quotients.
    """
    if ATensor.dtype.kind == "f":
        return _float_candidates(ATensor, BTensor, np.floor, ATensor.dtype)
    return _integer_candidates(
        element_wise_modulus_floor(ATensor, BTensor, OutputTensor), ATensor, BTensor
    )


def _float_remainder(
    dividend: Array, divisor: Array, operation: np.ufunc, rounding: np.ufunc
) -> Array:
    """Return `a - b * rounding(a / b)` in FLOAT64: NaN for an infinite divisor, and never -0.

    Measured on DirectML 1.8.0 and 1.15.4: a quotient too small for FLOAT32 is 0, and leaves the
    dividend.

    Args:
        dividend: `a`.
        divisor: `b`.
        operation: the same remainder, slower, for quotients that FLOAT64 cannot hold.
        rounding: how the quotient is rounded.
    """
    a, b = wide(dividend), wide(divisor)
    with np.errstate(all="ignore"):
        quotient = a / b
        small = np.abs(quotient) < _LEAST_QUOTIENT
        quotient[small] = quotient[small].astype(np.float32)
        remainder: Array = a - b * rounding(quotient) + 0.0
        large = np.abs(quotient) >= _LARGE_QUOTIENT
        if large.any():
            remainder[large] = operation(a[large], b[large]) + 0.0
        remainder[np.isinf(b)] = np.nan
    return remainder


def _narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(all="ignore"):
        return values.astype(np.float32).astype(dtype)


def _float_candidates(
    dividend: Array, divisor: Array, rounding: np.ufunc, dtype: np.dtype[Any]
) -> Sequence[tuple[Array, Array]]:
    """Return what `a - b * rounding(a / b)` of FLOAT32 arithmetic may be.

    A quotient may fall on the other side of a whole number that it is next to, but not where it is
    one: measured on DirectML 1.8.0 to 1.15.4, exact multiples leave 0. Between the remainders of
    two neighbouring whole numbers no value is right; those of more are an interval. A quotient that
    underflows, or whose reciprocal does, may be 0 and leave the dividend. The product with the
    divisor is exact where FLOAT32 holds it. Where a quotient or a product overflows, anything is
    right; but a divisor of zero leaves NaN.

    Args:
        dividend: `a`.
        divisor: `b`.
        rounding: how the quotient is rounded.
        dtype: the type of all three.
    """
    a, b = wide(dividend), wide(divisor)
    with np.errstate(all="ignore"):
        quotient = a / b
        multiple = (np.rint(quotient) == quotient) & (quotient * b == a)
        whole = multiple & (np.abs(quotient) < _LARGEST_MULTIPLE)
        error = np.where(whole, 0.0, np.abs(quotient) * _QUOTIENT)
        wholes = [rounding(quotient + end) for end in (-error, error)]
        products = [b * number for number in wholes]
        products_held = [product.astype(np.float32) == product for product in products]
        rooms = [
            np.where(held, 0.0, np.abs(product)) * STEP
            for held, product in zip(products_held, products, strict=True)
        ]
        remainders = [a - product for product in products]
        middle = (remainders[0] + remainders[1]) / 2
        length = np.abs(remainders[0] - remainders[1]) / 2 + np.maximum(*rooms)
        largest = np.maximum(np.abs(quotient) + error, np.abs(a) + length)
        overflows = np.isfinite(a) & (b != 0) & (largest > np.finfo(np.float32).max)
        undefined = np.isinf(b) | (b == 0)
        apart = np.abs(wholes[0] - wholes[1]) <= 1
        flushed = (np.abs(quotient) < _LEAST_QUOTIENT) | (np.abs(b) > LARGEST_DIVISOR)
        flushed &= ~undefined & np.isfinite(a)
    sides = [(remainders[0], rooms[0])]
    if (apart & (wholes[0] != wholes[1])).any():
        sides.append((remainders[1], rooms[1]))
    candidates = []
    for remainder, room in sides:
        values = np.where(apart, remainder, middle)
        ends = np.where(undefined, np.nan, values), np.where(apart, room, length)
        candidates.append(anything_where(overflows, rounded_interval(*ends, dtype)))
    if flushed.any():
        lowest, highest = candidates[0]
        narrow = a.astype(dtype)
        candidates.append((np.where(flushed, narrow, lowest), np.where(flushed, narrow, highest)))
    return candidates


def _integer_remainder(dividend: Array, divisor: Array, operation: np.ufunc) -> Array:
    """Return remainders of integers; of those by zero all bits are set."""
    with np.errstate(all="ignore"):
        remainder: Array = operation(dividend, divisor)
    remainder[divisor == 0] = -1 if dividend.dtype.kind == "i" else np.iinfo(dividend.dtype).max
    return remainder


def _integer_candidates(
    remainder: Array, dividend: Array, divisor: Array
) -> Sequence[tuple[Array, Array]]:
    """Return the remainder, or any integer for what Direct3D leaves undefined.

    Undefined are a signed integer modulo zero, and the smallest one modulo -1.
    """
    limits = np.iinfo(remainder.dtype)
    if remainder.dtype.kind == "u":
        return [(remainder, remainder)]
    undefined = (divisor == 0) | ((dividend == limits.min) & (divisor == -1))
    ends = (np.where(undefined, end, remainder) for end in (limits.min, limits.max))
    return [(next(ends), next(ends))]
