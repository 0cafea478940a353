"""Operators that compute each element of the output from the same element of the inputs.

An `..._interval` function takes the arguments of its operator and returns the least and the
greatest right value of each element, where Direct3D leaves hardware a choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.activation.errors import ERRORS
from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_add1",
    "element_wise_add1_interval",
    "element_wise_difference_square",
    "element_wise_difference_square_interval",
    "element_wise_divide",
    "element_wise_divide_candidates",
    "element_wise_max",
    "element_wise_max_interval",
    "element_wise_mean",
    "element_wise_mean_candidates",
    "element_wise_min",
    "element_wise_min_interval",
    "element_wise_multiply",
    "element_wise_multiply_interval",
    "element_wise_subtract",
    "element_wise_subtract_interval",
]

LARGEST_DIVISOR: Final = 2.0**126
"""The largest divisor whose reciprocal is a normal FLOAT32 number."""

_SUBNORMAL_RECIPROCAL: Final = 5 * STEP
"""The relative error of a quotient by way of a reciprocal that is subnormal and kept: that has two
digits less, and the product is rounded."""


def element_wise_add1(
    ATensor: Array,
    BTensor: Array,
    OutputTensor: TensorDesc,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `a + b`, or its activation; integers wrap around.

    A sum that its data type does not hold is infinite before the activation is applied.

    Source: the page of DML_ELEMENT_WISE_ADD1_OPERATOR_DESC; wrapping and overflow were measured.
    """
    total = _binary(np.add, ATensor, BTensor)
    if FusedActivation is None:
        return total
    with np.errstate(all="ignore"):
        return fused(wide(total), FusedActivation).astype(np.float32).astype(total.dtype)


def element_wise_add1_interval(
    ATensor: Array,
    BTensor: Array,
    OutputTensor: TensorDesc,
    FusedActivation: Mapping[str, Any] | None,
) -> tuple[Array, Array]:
    """Return the activation of the sum rounded either way, itself with its own error."""
    sums = _sum_toward_zero(wide(ATensor), wide(BTensor))
    ends = rounded_interval(sums, 0.0, OutputTensor.DataType.dtype)
    if FusedActivation is None:
        return ends
    with np.errstate(all="ignore"):
        total = wide(ATensor) + wide(BTensor)
        exact = fused(total, FusedActivation)
        error = ERRORS[FusedActivation["operator"]](total, **attributes_of(FusedActivation))
        of_ends = [fused(wide(end), FusedActivation) for end in ends]
        gaps = [np.abs(value - exact) for value in of_ends]
        finite = np.where(np.isfinite(gaps), gaps, 0.0).max(0)
        lowest, highest = rounded_interval(exact, error + finite, ends[0].dtype)
        # A sum may overflow before the activation is applied, or not.
        narrow = [value.astype(ends[0].dtype) for value in of_ends]
        undefined = np.isnan(of_ends).any(0) & ~np.isnan(exact)
        hull = np.fmin(lowest, np.fmin(*narrow)), np.fmax(highest, np.fmax(*narrow))
        return anything_where(undefined, hull)


def element_wise_subtract(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a - b`; integers wrap around.

    Source: the page of DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC; wrapping was measured.
    """
    return _binary(np.subtract, ATensor, BTensor)


def element_wise_subtract_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the difference of floating-point numbers, rounded either way."""
    exact = _sum_toward_zero(wide(ATensor), -wide(BTensor))
    return rounded_interval(exact, 0.0, OutputTensor.DataType.dtype)


def element_wise_multiply(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a * b`; integers wrap around.

    Source: the page of DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC; wrapping was measured.
    """
    return _binary(np.multiply, ATensor, BTensor)


def element_wise_multiply_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the product of floating-point numbers, rounded either way."""
    exact = _binary(np.multiply, wide(ATensor), wide(BTensor))
    return rounded_interval(exact, 0.0, OutputTensor.DataType.dtype)


def element_wise_min(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the lesser of `a` and `b`; the number where one of them is NaN.

    Source: the page of DML_ELEMENT_WISE_MIN_OPERATOR_DESC; NaN was measured.
    """
    return _binary(np.fmin, ATensor, BTensor)


def element_wise_min_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the lesser number; of two zeros either one."""
    lesser = element_wise_min(ATensor, BTensor, OutputTensor)
    return lesser, lesser


def element_wise_max(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the greater of `a` and `b`; the number where one of them is NaN.

    Source: the page of DML_ELEMENT_WISE_MAX_OPERATOR_DESC; NaN was measured.
    """
    return _binary(np.fmax, ATensor, BTensor)


def element_wise_max_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the greater number; of two zeros either one."""
    greater = element_wise_max(ATensor, BTensor, OutputTensor)
    return greater, greater


def element_wise_mean(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32,
    UINT32

    Return half the sum of `a` and `b`, which overflows in FLOAT32.

    Sums of integers wrap around, and their halves are truncated toward zero.

    Source: the page of DML_ELEMENT_WISE_MEAN_OPERATOR_DESC; the rest was measured.
    """
    dtype = OutputTensor.DataType.dtype
    if dtype.kind != "f":
        return _truncated_quotient(_binary(np.add, ATensor, BTensor), np.array(2, dtype))
    with np.errstate(all="ignore"):
        total = ATensor.astype(np.float32) + BTensor.astype(np.float32)
        half: Array = (total * np.float32(0.5)).astype(dtype)
    return half


def element_wise_mean_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> list[Interval]:
    """Return half the sum of floating-point numbers, rounded either way.

    If the sum overflows in FLOAT32, infinity is as right as the mean, but nothing in between.
    """
    dtype = OutputTensor.DataType.dtype
    total = _sum_toward_zero(wide(ATensor), wide(BTensor))
    lowest, highest = rounded_interval(total / 2, 0.0, dtype)
    overflows = np.isfinite(total) & (np.abs(total) > float(np.finfo(np.float32).max))
    if dtype != np.float32 or not overflows.any():
        return [(lowest, highest)]
    infinity = np.copysign(dtype.type(np.inf), total)
    ends = (np.where(overflows, infinity, end).astype(dtype) for end in (lowest, highest))
    beyond = tuple(ends)
    return [(lowest, highest), (beyond[0], beyond[1])]


def element_wise_difference_square(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32,
    UINT32

    Return the square of `a - b`; integers wrap around.

    Source: the page of DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC; wrapping was measured.
    """
    dtype = OutputTensor.DataType.dtype
    if dtype.kind != "f":
        difference = _binary(np.subtract, ATensor, BTensor)
        return _binary(np.multiply, difference, difference)
    with np.errstate(all="ignore"):
        square: Array = np.square(wide(ATensor) - wide(BTensor)).astype(np.float32)
        return square.astype(dtype)


def element_wise_difference_square_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the square of a rounded difference, rounded either way."""
    difference = _binary(np.subtract, wide(ATensor), wide(BTensor))
    exact = _binary(np.multiply, difference, difference)
    return rounded_interval(exact, exact * (2 * STEP + STEP**2), OutputTensor.DataType.dtype)


def element_wise_divide(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return `a / b`; quotients of integers are truncated.

    An integer divided by zero is the greatest UINT, or -1 and, for a negative dividend, 1; of
    INT64 it is 0. The smallest integer divided by -1 is itself.

    Source: the page of DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC; what is undefined was measured.
    """
    if ATensor.dtype.kind == "f":
        return _binary(np.divide, ATensor, BTensor)
    quotient = _truncated_quotient(ATensor, BTensor)
    by_zero = BTensor == 0
    if by_zero.any():
        quotient[by_zero] = _quotient_by_zero(ATensor[by_zero])
    return quotient


def element_wise_divide_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[tuple[Array, Array]]:
    """Return the quotient as `a * (1 / b)` or `a / b`, and any integer where it is undefined.

    The product with a reciprocal that is flushed is zero, or NaN of an infinite dividend. Undefined
    are a signed integer divided by zero, and the smallest one divided by -1.

    Source: Direct3D 11.3 functional specification: a reciprocal has an error of 1 ULP, and is
    flushed to zero where it is subnormal.
    """
    dtype = OutputTensor.DataType.dtype
    if dtype.kind == "f":
        return _quotient_candidates(wide(ATensor), wide(BTensor), dtype)
    quotient = element_wise_divide(ATensor, BTensor, OutputTensor)
    if dtype.kind == "u":
        return [(quotient, quotient)]
    limits = np.iinfo(dtype)
    undefined = (BTensor == 0) | ((ATensor == limits.min) & (BTensor == -1))
    return [(np.where(undefined, limits.min, quotient), np.where(undefined, limits.max, quotient))]


def _quotient_candidates(
    dividend: Array, divisor: Array, dtype: np.dtype[Any]
) -> Sequence[tuple[Array, Array]]:
    """Return the quotient of FLOAT64 numbers, and what it is by a reciprocal that is flushed."""
    exact = _binary(np.divide, dividend, divisor)
    large = np.abs(divisor) > LARGEST_DIVISOR
    error = np.abs(exact) * np.where(large, _SUBNORMAL_RECIPROCAL, STEP)
    lowest, highest = rounded_interval(exact, error, dtype)
    if not large.any():
        return [(lowest, highest)]
    flushed = _binary(np.multiply, dividend, np.copysign(0.0, divisor)).astype(dtype)
    return [
        (lowest, highest),
        (np.where(large, flushed, lowest), np.where(large, flushed, highest)),
    ]


def _binary(operation: np.ufunc, a: Array, b: Array) -> Array:
    """Return an operation of NumPy on two tensors in their own type.

    For the four basic operations rounding in the type itself, and FLOAT16 through FLOAT32, is as
    good as rounding an exact result once.
    """
    with np.errstate(all="ignore"):
        result: Array = operation(a, b)
    return result


def _sum_toward_zero(a: Array, b: Array) -> Array:
    """Return FLOAT64 sums that a lost digit has not made larger in magnitude.

    Source: Knuth, The Art of Computer Programming, volume 2, 4.2.2: the error of a sum.
    """
    with np.errstate(all="ignore"):
        total: Array = a + b
        share = total - a
        remainder = (a - (total - share)) + (b - share)
        return np.where(remainder * np.sign(total) < 0, np.nextafter(total, 0), total)


def _truncated_quotient(dividend: Array, divisor: Array) -> Array:
    """Return quotients of integers; those by zero are arbitrary."""
    with np.errstate(all="ignore"):
        if dividend.dtype.itemsize < 8:
            # FLOAT64 quotients of integers of up to 32 bits never reach the next integer.
            quotient: Array = np.divide(dividend, divisor, dtype=np.float64).astype(np.int64)
            return quotient.astype(dividend.dtype)
        whole: Array = (dividend - np.fmod(dividend, divisor)) // divisor
    return whole


def _quotient_by_zero(dividend: Array) -> Array:
    if dividend.dtype.kind == "u":
        return np.full_like(dividend, np.iinfo(dividend.dtype).max)
    if dividend.dtype == np.int64:
        return np.zeros_like(dividend)
    return np.where(dividend < 0, 1, -1).astype(dividend.dtype)
