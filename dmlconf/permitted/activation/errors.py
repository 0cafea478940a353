"""Errors of FLOAT32 hardware in an activation's formula, before the last rounding.

Sums, products and reciprocals are rounded toward zero. `numbers.accuracy` has the errors of exp2,
log2 and erf.

Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp, log, rcp).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.permitted.numbers.accuracy import ERF_ERROR, EXP2_ERROR, LOG2_E_ERROR, LOG2_ERROR
from dmlconf.permitted.numbers.rounding import ANY_RESULT, STEP
from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import (
    LARGEST_FLOAT32,
    LEAST_NORMAL_FLOAT32,
    LEAST_SUBNORMAL_FLOAT32,
)

__all__ = ["ERRORS", "infinite_by_factor"]

_LARGE: Final = 2.0**126
"""From here on, a small multiple of a number may overflow FLOAT32."""

_SATURATED: Final = 100.0
"""exp(100) overflows FLOAT32, and exp(-100) is nearly 0."""


def _exp(x: Array, of_x: Array | float = 0.0) -> Array:
    """Return the error of exp(x) if x has the error `of_x`; subnormal results may be 0."""
    value = np.exp(x)
    relative = np.expm1(np.abs(x) * (STEP + LOG2_E_ERROR) + of_x) + EXP2_ERROR
    return np.where(value < 2 * LEAST_NORMAL_FLOAT32, 2 * LEAST_NORMAL_FLOAT32, value * relative)


def _magnified(factor: float, value: Array, error: Array) -> Array:
    """Return the error of factor * value if `value` has the error `error`.

    With an infinite factor, the error is ANY_RESULT where `value` may be 0, else 0.
    """
    if not np.isinf(factor):
        return abs(factor) * error
    return np.where(np.abs(value) <= error, ANY_RESULT, 0.0)


def _overflows_unscaled(x: Array, product: Array) -> Array:
    """Return where `2 * log2(e) * x` may overflow before a small attribute multiplies it.

    Measured: kernels multiply by the attribute last.
    """
    return (np.abs(x) >= _LARGE) & np.isfinite(x) & (np.abs(product) < _SATURATED)


def _elu(x: Array, Alpha: float) -> Array:
    below = np.minimum(x, 0.0)
    rounding = _exp(below) + STEP * (np.exp(below) - np.expm1(below))
    return np.where(x < 0, abs(Alpha) * rounding, 0.0)


def _celu(x: Array, Alpha: float) -> Array:
    of_quotient = np.abs(x / Alpha) * 2 * STEP
    argument = x / Alpha
    error = abs(Alpha) * (_exp(argument, of_quotient) - STEP * np.expm1(argument))
    # Where x is positive, min(0, ...) is 0, but an error may take its argument below 0.
    return np.where(Alpha * np.expm1(argument) <= error, error, 0.0)


def _cancelled_by_infinity(product: Array, Beta: float) -> Array:
    """Return where a finite product overflows FLOAT32 to the infinity opposite to an infinite Beta.

    Their sum is NaN.
    """
    beyond = np.isfinite(product) & (np.abs(product) > LARGEST_FLOAT32)
    cancelled: Array = beyond & np.isinf(Beta) & (np.sign(product) != np.sign(Beta))
    return cancelled


def _hard_sigmoid(x: Array, Alpha: float, Beta: float) -> Array:
    exact = Alpha * x + Beta
    error = (np.abs(Alpha * x) + np.abs(exact)) * STEP
    error = np.where((exact > -error) & (exact < 1 + error), error, 0.0)
    # Where the exact result is 1, a kernel may return max(NaN, 0), which is 0.
    return np.where(_cancelled_by_infinity(Alpha * x, Beta), 1.0, error)


def _hard_swish(x: Array, Alpha: float, Beta: float) -> Array:
    return np.abs(x) * _hard_sigmoid(x, Alpha, Beta)


def _linear(x: Array, Alpha: float, Beta: float) -> Array:
    product = Alpha * x
    error = np.abs(product) * STEP
    # Measured: DirectML 1.15.4 gives NaN for 7 * -3.4e38 + inf, and infinity for 4 * 1e38 - 1e38.
    overflows = np.isfinite(product) & (np.abs(product) > LARGEST_FLOAT32)
    in_doubt = overflows & (np.abs(product + Beta) <= LARGEST_FLOAT32)
    in_doubt |= _cancelled_by_infinity(product, Beta)
    return np.where(in_doubt, ANY_RESULT, error)


def _log_of_sum(x: Array, of_x: Array) -> Array:
    """Return the error of log(1 + exp(x))."""
    exact = np.logaddexp(0.0, x)
    # Above 80, kernels may return x itself.
    below = np.minimum(x, 80.0)
    whole = 1 + np.exp(below)
    of_sum = _exp(below, np.where(x > 80.0, 0.0, of_x)) / whole + STEP
    of_log = np.maximum(exact, np.log(2.0)) * LOG2_ERROR
    error = of_log + of_sum + np.where(x > 0, of_x, 0.0)
    # Beyond 89 the exponential overflows, so no kernel can take the logarithm of the sum.
    return np.where(x > 89.0, exact * STEP + of_x, error)


def _parametric_softplus(x: Array, Alpha: float, Beta: float) -> Array:
    product = Beta * x
    error = _log_of_sum(product, np.abs(product) * STEP)
    value = np.logaddexp(0.0, product)
    # A kernel may multiply log2 by Alpha * ln(2). This factor and Beta may be 0 if subnormal.
    vanishes = min(abs(Alpha), abs(Beta)) < 2 * LEAST_NORMAL_FLOAT32
    # Measured: if Beta * x is large, this is (Alpha * Beta) * x, whose factor may be subnormal.
    of_factor = np.abs(Alpha * product) if abs(Alpha * Beta) < LEAST_NORMAL_FLOAT32 else 0.0
    magnified = _magnified(Alpha, value, error) + np.where(product > 1, of_factor, 0.0)
    return np.where(vanishes & np.isinf(value), ANY_RESULT, magnified)


def infinite_by_factor(x: Array, activation: Mapping[str, Any]) -> Array | None:
    """Return where an activation may be infinite since a product of its attributes overflows.

    The infinity has the sign of the result. None if no element may be infinite for this reason.

    Measured on DirectML 1.8.0 to 1.15.4: for large x PARAMETRIC_SOFTPLUS is (Alpha * Beta) * x.
    With an Alpha of 100 and a Beta of -1e38 it is infinite for -2e-23, and 131 for -1e-38.
    """
    if activation.get("operator") != "ACTIVATION_PARAMETRIC_SOFTPLUS":
        return None
    attributes = attributes_of(activation)
    factor = abs(attributes["Alpha"] * attributes["Beta"])
    if not np.isfinite(factor) or factor <= LARGEST_FLOAT32:
        return None
    infinite: Array = attributes["Beta"] * x > 1
    return infinite if infinite.any() else None


def _softplus(x: Array, Steepness: float) -> Array:
    product = Steepness * x
    of_log = _log_of_sum(product, np.abs(product) * STEP)
    error = (of_log + np.logaddexp(0.0, product) * STEP) / abs(Steepness)
    # If the product overflows, only a kernel that returns x itself gives a number.
    return np.where(product > LARGEST_FLOAT32, 0.0, error)


def _scaled_elu(x: Array, Alpha: float, Gamma: float) -> Array:
    value = np.abs(np.where(x < 0, Alpha * np.expm1(np.minimum(x, 0.0)), 0.0))
    # Before Gamma multiplies it, a subnormal product with Alpha has few digits, or is 0.
    of_product = np.where(
        value < LEAST_NORMAL_FLOAT32, value + LEAST_SUBNORMAL_FLOAT32, STEP * value
    )
    of_product = np.where(x < 0, of_product, 0.0)
    error = _elu(x, Alpha) + of_product
    return np.where(x < 0, _magnified(Gamma, value, error), 0.0)


def _sigmoid_of(x: Array, of_x: Array | float) -> Array:
    """Return the error of 1 / (1 + exp(-x))."""
    value = 1 / (1 + np.exp(-x))
    # Below -88 the quotient is subnormal, and the error of the sum does not count.
    of_sum = _exp(np.minimum(-x, 88.0), of_x) * value + STEP
    return np.where(
        value < 2 * LEAST_NORMAL_FLOAT32, 2 * LEAST_NORMAL_FLOAT32, value * (of_sum + STEP)
    )


def _sigmoid(x: Array) -> Array:
    return _sigmoid_of(x, 0.0)


def _swish(x: Array, SigmoidInputScale: float) -> Array:
    product = SigmoidInputScale * x
    error = np.abs(x) * _sigmoid_of(product, np.abs(product) * STEP)
    return np.where(_overflows_unscaled(x, product), ANY_RESULT, error)


def _softsign(x: Array) -> Array:
    # Measured: a subnormal reciprocal of the divisor adds no error.
    value: Array = np.abs(x) / (1 + np.abs(x))
    return value * (2 * STEP)


def _tanh_of(x: Array, of_x: Array | float) -> Array:
    """Return the error of (1 - exp(-2 x)) / (1 + exp(-2 x))."""
    small = np.exp(-2 * np.abs(x))
    error = _exp(-2 * np.abs(x), 2 * of_x)
    value: Array = np.abs(np.tanh(x))
    of_quotient: Array = (error * (1 + value) + STEP * (1 - small)) / (1 + small)
    return of_quotient + 2 * STEP * value


def _tanh(x: Array) -> Array:
    return _tanh_of(x, 0.0)


def _scaled_tanh(x: Array, Alpha: float, Beta: float) -> Array:
    product = Beta * x
    error = _magnified(Alpha, np.tanh(product), _tanh_of(product, np.abs(product) * STEP))
    return np.where(_overflows_unscaled(x, product), ANY_RESULT, error)


def _gelu(x: Array) -> Array:
    # Measured: where |x| is 6 or more, erf is 1 or -1, off by one ULP at most.
    error = np.where(np.abs(x) < 6, ERF_ERROR, STEP)
    return 0.5 * np.abs(x) * error + STEP * np.maximum(x, 0.0)


def _none(x: Array, **attributes: float) -> Array:
    return np.zeros_like(x)


ERRORS: Final[Mapping[str, Callable[..., Array]]] = {
    "ACTIVATION_CELU": _celu,
    "ACTIVATION_ELU": _elu,
    "ACTIVATION_GELU": _gelu,
    "ACTIVATION_HARD_SIGMOID": _hard_sigmoid,
    "ACTIVATION_HARD_SWISH": _hard_swish,
    "ACTIVATION_IDENTITY": _none,
    "ACTIVATION_LEAKY_RELU": _none,
    "ACTIVATION_LINEAR": _linear,
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _parametric_softplus,
    "ACTIVATION_RELU": _none,
    "ACTIVATION_SCALED_ELU": _scaled_elu,
    "ACTIVATION_SCALED_TANH": _scaled_tanh,
    "ACTIVATION_SHRINK": _none,
    "ACTIVATION_SIGMOID": _sigmoid,
    "ACTIVATION_SOFTPLUS": _softplus,
    "ACTIVATION_SOFTSIGN": _softsign,
    "ACTIVATION_SWISH": _swish,
    "ACTIVATION_TANH": _tanh,
    "ACTIVATION_THRESHOLDED_RELU": _none,
    "ELEMENT_WISE_CLIP": _none,
}
"""The functions that return the absolute errors, by operator.

They take FLOAT64 numbers, and the operator's attributes by name. With the error ANY_RESULT, any
result is right.
"""
