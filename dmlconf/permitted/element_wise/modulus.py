"""Permitted results of MODULUS_FLOOR, `a - b * floor(a / b)`, and MODULUS_TRUNCATE, with trunc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.element_wise.arithmetic import LARGEST_DIVISOR
from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.modulus import (
    LEAST_QUOTIENT,
    element_wise_modulus_floor,
    element_wise_modulus_truncate,
)
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_modulus_floor_candidates",
    "element_wise_modulus_truncate_candidates",
]

_QUOTIENT: Final = 3 * STEP
"""The relative error of a quotient that is computed as a product with a reciprocal. Both are off by
at most STEP; the third STEP is a margin."""

_LARGEST_MULTIPLE: Final = 2.0**22
"""If a / b is whole and less than this in size, the remainder is 0.

Measured on DirectML 1.8.0 to 1.15.4.
"""


def element_wise_modulus_truncate_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[Interval]:
    """Return the candidates of MODULUS_TRUNCATE: the remainders that rounded steps may give.

    For integers, only the reference's remainder is right, with two exceptions: any signed integer
    is right if the divisor is 0, or if the dividend is the lowest integer and the divisor -1.

    Source: Direct3D 11.3 functional specification: a reciprocal has an error of 1 ULP, and is
    flushed to zero where it is subnormal.
    """
    remainder = element_wise_modulus_truncate(ATensor, BTensor, OutputTensor)
    return _candidates(ATensor, BTensor, remainder, np.trunc)


def element_wise_modulus_floor_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[Interval]:
    """Return the candidates of MODULUS_FLOOR: the remainders that rounded steps may give.

    For integers, only the reference's remainder is right, with two exceptions: any signed integer
    is right if the divisor is 0, or if the dividend is the lowest integer and the divisor -1.

    Source: Direct3D 11.3 functional specification: a reciprocal has an error of 1 ULP, and is
    flushed to zero where it is subnormal.
    """
    remainder = element_wise_modulus_floor(ATensor, BTensor, OutputTensor)
    return _candidates(ATensor, BTensor, remainder, np.floor)


def _candidates(
    dividend: Array, divisor: Array, remainder: Array, rounding: np.ufunc
) -> Sequence[Interval]:
    if remainder.dtype.kind == "f":
        return _float_candidates(dividend, divisor, rounding, remainder.dtype)
    return _integer_candidates(dividend, divisor, remainder)


def _float_candidates(
    dividend: Array, divisor: Array, rounding: np.ufunc, dtype: np.dtype[Any]
) -> Sequence[Interval]:
    """Return the permitted results of `a - b * rounding(a / b)` in FLOAT32 arithmetic.

    If a / b is 2.9999999, FLOAT32 may round it to 3: the remainder is then about 0 or b, but
    nothing between. If the whole numbers that a / b may become are further apart than 1, all
    numbers between their remainders are right. A whole a / b below `_LARGEST_MULTIPLE` has no
    error. If a / b or 1 / b underflows, a / b may count as 0: the remainder is then a. If a
    quotient or a product overflows, any value is right. If b is 0 or infinite, or a is infinite,
    the remainder is NaN.
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
        errors = [
            np.where(held, 0.0, np.abs(product)) * STEP
            for held, product in zip(products_held, products, strict=True)
        ]
        remainders = [a - product for product in products]
        middle = (remainders[0] + remainders[1]) / 2
        half_width = np.abs(remainders[0] - remainders[1]) / 2 + np.maximum(*errors)
        largest = np.maximum.reduce([np.abs(quotient) + error, *np.abs(products)])
        overflows = np.isfinite(a) & (b != 0) & (largest > np.finfo(np.float32).max)
        undefined = np.isinf(b) | (b == 0)
        adjacent = np.abs(wholes[0] - wholes[1]) <= 1
        flushed = (np.abs(quotient) < LEAST_QUOTIENT) | (np.abs(b) > LARGEST_DIVISOR)
        flushed &= ~undefined & np.isfinite(a)
    sides = [(remainders[0], errors[0])]
    if (adjacent & (wholes[0] != wholes[1])).any():
        sides.append((remainders[1], errors[1]))
    candidates = []
    for remainder, reach in sides:
        values = np.where(adjacent, remainder, middle)
        ends = np.where(undefined, np.nan, values), np.where(adjacent, reach, half_width)
        candidates.append(anything_where(overflows, rounded_interval(*ends, dtype)))
    if flushed.any():
        lowest, highest = candidates[0]
        narrow = a.astype(dtype)
        candidates.append((np.where(flushed, narrow, lowest), np.where(flushed, narrow, highest)))
    return candidates


def _integer_candidates(dividend: Array, divisor: Array, remainder: Array) -> Sequence[Interval]:
    limits = np.iinfo(remainder.dtype)
    if remainder.dtype.kind == "u":
        return [(remainder, remainder)]
    undefined = (divisor == 0) | ((dividend == limits.min) & (divisor == -1))
    ends = (np.where(undefined, end, remainder) for end in (limits.min, limits.max))
    return [(next(ends), next(ends))]
