"""Formulas of the activations that compute an output element from one input element.

Source: the pages of the DML_ACTIVATION_..._OPERATOR_DESC; NaN and infinities were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.reference.numbers.erf import erfc
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = ["FORMULAS", "attributes_of"]

_LARGE_EXPONENT: Final = 80.0
"""From this y on, `log(1 + exp(y))` is y in FLOAT32."""


def _celu(x: Array, Alpha: float) -> Array:
    # Measured: 0 for NaN, since fmax and fmin return the other number.
    return np.fmax(0.0, x) + np.fmin(0.0, Alpha * np.expm1(x / Alpha))


def _elu(x: Array, Alpha: float) -> Array:
    if 0 < Alpha < np.inf:
        # `clip` takes half the time of `where`; `copysign` keeps the sign of zeros.
        above, below = np.clip(x, 0, np.inf), np.clip(x, -np.inf, 0)
        value: Array = np.copysign(above + Alpha * np.expm1(below), x)
        return value
    return np.where(x < 0, Alpha * np.expm1(np.minimum(x, 0)), x)


def _gelu(x: Array) -> Array:
    # erfc(-x) is 1 + erf(x), without cancellation if x is negative.
    value: Array = 0.5 * x * erfc(x * -(0.5**0.5))
    return value


def _hard_sigmoid(x: Array, Alpha: float, Beta: float) -> Array:
    value: Array = np.clip(Alpha * x + Beta, 0.0, 1.0)
    value[np.isnan(value)] = 0.0
    return value


def _hard_swish(x: Array, Alpha: float, Beta: float) -> Array:
    return x * _hard_sigmoid(x, Alpha, Beta)


def _identity(x: Array) -> Array:
    return x


def _leaky_relu(x: Array, Alpha: float) -> Array:
    if Alpha <= 0 or not np.isfinite(Alpha):
        # Where x is not negative, the product may be NaN, or a zero of the other sign.
        return np.where(x < 0, Alpha * x, x)
    # This choice takes half the time of `where`.
    choose = np.maximum if Alpha <= 1 else np.minimum
    result: Array = choose(x, Alpha * x)
    return result


def _log_1_and_exp(x: Array) -> Array:
    """Return `log(1 + exp(x))`, several times as fast as `logaddexp`."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _linear(x: Array, Alpha: float, Beta: float) -> Array:
    return Alpha * x + Beta


def _parametric_softplus(x: Array, Alpha: float, Beta: float) -> Array:
    return Alpha * _log_1_and_exp(Beta * x)


def _relu(x: Array) -> Array:
    return np.where(x > 0, x, 0.0)


def _scaled_elu(x: Array, Alpha: float, Gamma: float) -> Array:
    return Gamma * _elu(x, Alpha)


def _scaled_tanh(x: Array, Alpha: float, Beta: float) -> Array:
    return Alpha * np.tanh(Beta * x)


def _shrink(x: Array, Bias: float, Threshold: float) -> Array:
    return np.where(x > Threshold, x - Bias, np.where(x < -Threshold, x + Bias, 0.0))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array, Steepness: float) -> Array:
    product = Steepness * x
    # Measured: the output is x where the product is NaN or large.
    return np.where(product < _LARGE_EXPONENT, _log_1_and_exp(product) / Steepness, x)


def _softsign(x: Array) -> Array:
    value: Array = x / (1 + np.abs(x))
    return value


def _swish(x: Array, SigmoidInputScale: float) -> Array:
    return x * _sigmoid(SigmoidInputScale * x)


def _tanh(x: Array) -> Array:
    return np.tanh(x)


def _thresholded_relu(x: Array, Alpha: float) -> Array:
    return np.where(x <= Alpha, 0.0, x)


FORMULAS: Final[Mapping[str, Callable[..., Array]]] = {
    "ACTIVATION_CELU": _celu,
    "ACTIVATION_ELU": _elu,
    "ACTIVATION_GELU": _gelu,
    "ACTIVATION_HARD_SIGMOID": _hard_sigmoid,
    "ACTIVATION_HARD_SWISH": _hard_swish,
    "ACTIVATION_IDENTITY": _identity,
    "ACTIVATION_LEAKY_RELU": _leaky_relu,
    "ACTIVATION_LINEAR": _linear,
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _parametric_softplus,
    "ACTIVATION_RELU": _relu,
    "ACTIVATION_SCALED_ELU": _scaled_elu,
    "ACTIVATION_SCALED_TANH": _scaled_tanh,
    "ACTIVATION_SHRINK": _shrink,
    "ACTIVATION_SIGMOID": _sigmoid,
    "ACTIVATION_SOFTPLUS": _softplus,
    "ACTIVATION_SOFTSIGN": _softsign,
    "ACTIVATION_SWISH": _swish,
    "ACTIVATION_TANH": _tanh,
    "ACTIVATION_THRESHOLDED_RELU": _thresholded_relu,
}
"""The function of each operator; it takes floating-point numbers, and attributes by name."""


def attributes_of(activation: Mapping[str, Any]) -> dict[str, float]:
    """Return an activation's attributes by name, as FLOAT32 numbers.

    The name `operator`, fields that are None, and the ScaleBias of a fused CLIP are left out.

    Source: measured on DirectML 1.13.1 and 1.15.4, which ignore this ScaleBias.
    """
    return {
        name: single(value)
        for name, value in activation.items()
        if name != "operator" and value is not None and not isinstance(value, Mapping)
    }
