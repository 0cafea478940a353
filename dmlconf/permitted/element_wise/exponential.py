"""Permitted errors of SQRT, RECIP, EXP, LOG, ERF, SINH, COSH, TANH, ASINH, ACOSH and ATANH.

SQRT and RECIP are hardware functions. Kernels compute the others by formulas, such as
`exp2(x * log2(e))` for EXP, whose error is the sum of the errors of the steps.

Source: Direct3D 11.3 functional specification, 22.10 (sqrt, rcp, exp, log).
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.activation.errors import ERRORS
from dmlconf.permitted.element_wise.scale_bias import (
    function_interval,
    scaled_interval,
    unary_interval,
)
from dmlconf.permitted.numbers.accuracy import ERF_ERROR, EXP2_ERROR, LOG2_E_ERROR, LOG2_ERROR
from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.scale_bias import ScaleBias, scaled
from dmlconf.reference.numbers.erf import erf
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_acosh_interval",
    "element_wise_asinh_interval",
    "element_wise_atanh_interval",
    "element_wise_cosh_interval",
    "element_wise_erf_interval",
    "element_wise_exp_interval",
    "element_wise_log_interval",
    "element_wise_recip_interval",
    "element_wise_sinh_interval",
    "element_wise_sqrt_interval",
    "element_wise_tanh_interval",
]

_LOG_OF_LEAST: Final = -87.3365
"""The logarithm of the least normal FLOAT32 number, 2^-126."""

_OVERFLOW: Final = 2.0**128
"""The least power of 2 that overflows FLOAT32."""


def _sqrt_error(x: Array) -> Array:
    return np.sqrt(x) * STEP


def _reciprocal_error(x: Array) -> Array:
    return np.abs(STEP / x)


def _log_error(x: Array) -> Array:
    """Return the error of log2(x) * log(2), whose constant and product are rounded."""
    logarithm = np.abs(np.log(x))
    error: Array = np.maximum(logarithm, np.log(2.0)) * LOG2_ERROR + logarithm * 2 * STEP
    return error


def _exp_error(x: Array) -> Array:
    """Return the error of exp2(x * log2(e)), with x * log2(e) rounded."""
    error: Array = np.exp(x) * (np.expm1(np.abs(x) * (STEP + LOG2_E_ERROR)) + EXP2_ERROR)
    return error


def _of_exponentials(x: Array, value: Array) -> Array:
    """Return the error of `value`, the size of sinh or cosh.

    If exp may overflow and `value` is below 2^128, the error is 2^128 - `value`: infinity is right
    too.
    """
    error = (_exp_error(x) + _exp_error(-x)) / 2 + 2 * STEP * value
    exponential = np.exp(np.abs(x))
    overflows = exponential + _exp_error(np.abs(x)) >= np.finfo(np.float32).max
    return np.where(overflows & (value < _OVERFLOW), _OVERFLOW - value, error)


def _sinh_error(x: Array) -> Array:
    return _of_exponentials(x, np.abs(np.sinh(x)))


def _cosh_error(x: Array) -> Array:
    return _of_exponentials(x, np.cosh(x))


def _atanh_error(x: Array) -> Array:
    of_quotient = 5 * STEP  # STEP each for 1 + x and 1 - x, and 3 STEP for their quotient.
    error: Array = (_log_error((1 + x) / (1 - x)) + of_quotient) / 2 + STEP * np.abs(np.arctanh(x))
    return error


def _log_of_sum_interval(
    one: float, tensor: Array, scale_bias: ScaleBias | None, output: TensorDesc
) -> Interval:
    """Return the interval of log(x + sqrt(x^2 + one)); `one` is 1 for asinh and -1 for acosh.

    The square may overflow. For a large negative x, the sum may lose all digits. Any value is right

    - if the interval of the scaled x begins at -infinity and ends elsewhere;
    - for acosh, also if the interval begins below 1 and ends at 1 or above;
    - for acosh, also if the interval ends at -1 or below and the sum may be 0.
    """
    dtype = output.DataType.dtype
    low, high = scaled_interval(tensor, scale_bias)
    undefined = np.isneginf(low) & ~np.isneginf(high)
    if one < 0:
        undefined |= (low < 1) & (high >= 1)
        low = np.where(undefined, 1.0, low)
    with np.errstate(all="ignore"):
        least, _ = _sum_ends(low, one)
        _, greatest = _sum_ends(high, one)
        if one < 0:
            undefined |= (high <= -1) & (greatest >= 0)
        lowest, _ = rounded_interval(np.log(least), _log_error(least), dtype)
        _, highest = rounded_interval(np.log(greatest), _log_error(greatest), dtype)
    return anything_where(undefined, (lowest, highest))


def _sum_ends(x: Array, one: float) -> tuple[Array, Array]:
    """Return the least and the greatest x + sqrt(x^2 + one) of FLOAT32 arithmetic."""
    square = x * x
    radicand = square + one
    error = (square + np.abs(radicand)) * STEP
    roots = [np.sqrt(np.maximum(radicand + sign * error, 0.0)) for sign in (-1, 1)]
    exact = np.where(x < 0, one / (np.sqrt(radicand) - x), x + np.sqrt(radicand))
    steps = (roots[1] + np.abs(exact)) * STEP
    least = np.minimum(exact, np.maximum(x + roots[0] - steps, 0.0))
    greatest = np.maximum(exact, x + roots[1] + steps)
    overflows = square + error > np.finfo(np.float32).max
    return least, np.where(overflows, np.inf, greatest)


def _log_interval(tensor: Array, scale_bias: ScaleBias | None, output: TensorDesc) -> Interval:
    lowest, highest = function_interval(
        np.log, tensor, scale_bias, output, error=_log_error, domain=(0.0, np.inf)
    )
    values = scaled(tensor, scale_bias)
    subnormal = (values > 0) & (values < np.finfo(np.float32).tiny)
    if not subnormal.any():
        return lowest, highest
    infinity, least_normal = highest.dtype.type([np.inf, _LOG_OF_LEAST])
    return np.where(subnormal, -infinity, lowest), np.where(subnormal, least_normal, highest)


element_wise_sqrt_interval = unary_interval(
    "element_wise_sqrt",
    partial(function_interval, np.sqrt, error=_sqrt_error, domain=(0.0, np.inf)),
    "the square root with a relative error of 2^-23",
)

element_wise_recip_interval = unary_interval(
    "element_wise_recip",
    partial(function_interval, np.reciprocal, error=_reciprocal_error, at_zero=(-np.inf, np.inf)),
    "the reciprocal with a relative error of 2^-23",
)

element_wise_exp_interval = unary_interval(
    "element_wise_exp",
    partial(function_interval, np.exp, error=_exp_error),
    "`exp(x)` computed as `exp2(x * log2(e))`",
)

element_wise_log_interval = unary_interval(
    "element_wise_log",
    _log_interval,
    "`log2(x) * log(2)`; for a positive number below 2^-126, the logarithm of any number from 0 to "
    "2^-126, since a device may flush the number to 0 or, as was measured, take it for 2^-126",
)

element_wise_tanh_interval = unary_interval(
    "element_wise_tanh",
    partial(function_interval, np.tanh, error=ERRORS["ACTIVATION_TANH"]),
    "`(1 - exp(-2 x)) / (1 + exp(-2 x))`",
)

element_wise_sinh_interval = unary_interval(
    "element_wise_sinh",
    partial(function_interval, np.sinh, error=_sinh_error),
    "`(exp(x) - exp(-x)) / 2`, which may be infinite if exp overflows",
)

element_wise_cosh_interval = unary_interval(
    "element_wise_cosh",
    partial(function_interval, np.cosh, error=_cosh_error, at_zero=(1.0,)),
    "`(exp(x) + exp(-x)) / 2`, which may be infinite if exp overflows",
)

element_wise_asinh_interval = unary_interval(
    "element_wise_asinh", partial(_log_of_sum_interval, 1.0), "`log(x + sqrt(x^2 + 1))`"
)

element_wise_acosh_interval = unary_interval(
    "element_wise_acosh",
    partial(_log_of_sum_interval, -1.0),
    "`log(x + sqrt(x^2 - 1))`; any value if x is -1 or less and the sum may be zero",
)

element_wise_atanh_interval = unary_interval(
    "element_wise_atanh",
    partial(function_interval, np.arctanh, error=_atanh_error, domain=(-1.0, 1.0)),
    "`log((1 + x) / (1 - x)) / 2`",
)

element_wise_erf_interval = unary_interval(
    "element_wise_erf",
    partial(function_interval, erf, error=lambda x: ERF_ERROR),
    "the error function by a polynomial and an exp",
)
