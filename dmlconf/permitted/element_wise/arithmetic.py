"""Permitted results of arithmetic on two tensors, such as ADD1.

`modulus` has the remainders, `power` POW and ATAN_YX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.activation.errors import ERRORS, infinite_by_factor
from dmlconf.permitted.numbers.rounding import ANY_RESULT, STEP, anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.element_wise.arithmetic import (
    computed,
    element_wise_divide,
    element_wise_max,
    element_wise_min,
)
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32

__all__ = [
    "LARGEST_DIVISOR",
    "element_wise_add1_interval",
    "element_wise_difference_square_interval",
    "element_wise_divide_candidates",
    "element_wise_max_interval",
    "element_wise_mean_candidates",
    "element_wise_min_interval",
    "element_wise_multiply_interval",
    "element_wise_subtract_interval",
]

LARGEST_DIVISOR: Final = 2.0**126
"""The largest divisor whose reciprocal is a normal FLOAT32 number."""

_SUBNORMAL_RECIPROCAL: Final = 5 * STEP
"""The relative error of a product with a subnormal reciprocal that is not flushed. Such a
reciprocal has up to two bits fewer than a normal number."""


def element_wise_add1_interval(
    ATensor: Array,
    BTensor: Array,
    OutputTensor: TensorDesc,
    FusedActivation: Mapping[str, Any] | None,
) -> Interval:
    """Return the interval of ADD1: the sum, rounded toward zero or to nearest, or its activation.

    The activation has an error of its own. Any value is right where this error is ANY_RESULT for a
    rounded sum, or where the result is NaN for a rounded sum but not for the exact one.
    """
    sums = _sum_toward_zero(wide(ATensor), wide(BTensor))
    ends = rounded_interval(sums, 0.0, OutputTensor.DataType.dtype)
    if FusedActivation is None:
        return ends
    with np.errstate(all="ignore"):
        total = wide(ATensor) + wide(BTensor)
        exact = fused(total, FusedActivation)
        attributes = attributes_of(FusedActivation)
        error, *errors = (
            ERRORS[FusedActivation["operator"]](each, **attributes)
            for each in (total, *map(wide, ends))
        )
        of_ends = [fused(wide(end), FusedActivation) for end in ends]
        gaps = [np.abs(value - exact) for value in of_ends]
        finite = np.where(np.isfinite(gaps), gaps, 0.0).max(0)
        lowest, highest = rounded_interval(exact, error + finite, ends[0].dtype)
        # Kernels differ in whether a sum overflows before the activation.
        narrow = [value.astype(ends[0].dtype) for value in of_ends]
        undefined = np.isnan(of_ends).any(0) & ~np.isnan(exact)
        undefined |= np.equal(errors, ANY_RESULT).any(0)
        infinite = infinite_by_factor(total, FusedActivation)
        if infinite is not None:
            overflowed = np.where(infinite, np.copysign(np.inf, exact), exact)
            narrow.append(overflowed.astype(lowest.dtype))
        hull = np.fmin.reduce([lowest, *narrow]), np.fmax.reduce([highest, *narrow])
        return anything_where(undefined, hull)


def element_wise_subtract_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Interval:
    """Return the interval of SUBTRACT: the difference, rounded toward zero or to nearest."""
    exact = _sum_toward_zero(wide(ATensor), -wide(BTensor))
    return rounded_interval(exact, 0.0, OutputTensor.DataType.dtype)


def element_wise_multiply_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Interval:
    """Return the interval of MULTIPLY: the product, rounded toward zero or to nearest."""
    exact = computed(np.multiply, wide(ATensor), wide(BTensor))
    return rounded_interval(exact, 0.0, OutputTensor.DataType.dtype)


def element_wise_min_interval(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Interval:
    """Return the lesser number as both ends; intervals ignore the sign of a zero."""
    lesser = element_wise_min(ATensor, BTensor, OutputTensor)
    return lesser, lesser


def element_wise_max_interval(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Interval:
    """Return the greater number as both ends; intervals ignore the sign of a zero."""
    greater = element_wise_max(ATensor, BTensor, OutputTensor)
    return greater, greater


def element_wise_mean_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> list[Interval]:
    """Return the candidates of MEAN: half the sum, rounded toward zero or to nearest.

    If the sum of FLOAT32 numbers overflows, the mean and infinity are right, but nothing between.
    """
    dtype = OutputTensor.DataType.dtype
    total = _sum_toward_zero(wide(ATensor), wide(BTensor))
    lowest, highest = rounded_interval(total / 2, 0.0, dtype)
    overflows = np.isfinite(total) & (np.abs(total) > LARGEST_FLOAT32)
    if dtype != np.float32 or not overflows.any():
        return [(lowest, highest)]
    infinity = np.copysign(dtype.type(np.inf), total)
    least, most = (np.where(overflows, infinity, end).astype(dtype) for end in (lowest, highest))
    return [(lowest, highest), (least, most)]


def element_wise_difference_square_interval(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Interval:
    """Return the interval of DIFFERENCE_SQUARE; difference and square are rounded up or down."""
    difference = computed(np.subtract, wide(ATensor), wide(BTensor))
    exact = computed(np.multiply, difference, difference)
    return rounded_interval(exact, exact * (2 * STEP + STEP**2), OutputTensor.DataType.dtype)


def element_wise_divide_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[Interval]:
    """Return the candidates of DIVIDE: `a / b` or `a * (1 / b)`.

    If the reciprocal is flushed to zero, the product is zero, or NaN if the dividend is infinite.
    A quotient of integers is the reference's. For signed integers, any result is right for a
    division by zero, and for the lowest integer divided by -1.

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
) -> Sequence[Interval]:
    """Return the candidates of a / b: the quotient, and a times a reciprocal flushed to zero."""
    exact = computed(np.divide, dividend, divisor)
    large = np.abs(divisor) > LARGEST_DIVISOR
    error = np.abs(exact) * np.where(large, _SUBNORMAL_RECIPROCAL, STEP)
    lowest, highest = rounded_interval(exact, error, dtype)
    if not large.any():
        return [(lowest, highest)]
    flushed = computed(np.multiply, dividend, np.copysign(0.0, divisor)).astype(dtype)
    return [
        (lowest, highest),
        (np.where(large, flushed, lowest), np.where(large, flushed, highest)),
    ]


def _sum_toward_zero(a: Array, b: Array) -> Array:
    """Return a + b, in FLOAT64, rounded toward zero.

    Source: Knuth, The Art of Computer Programming, volume 2, 4.2.2: the error of a sum.
    """
    with np.errstate(all="ignore"):
        total: Array = a + b
        share = total - a
        remainder = (a - (total - share)) + (b - share)
        return np.where(remainder * np.sign(total) < 0, np.nextafter(total, 0), total)
