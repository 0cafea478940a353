"""The greatest slopes of fused activations, anywhere and between two arguments.

An activation multiplies an error of its argument by at most its slope. Where it is constant, such
as RELU below 0, it loses the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.tensors.datatypes import Array

__all__ = ["local_slope", "slope"]

_SLOPES: Final[Mapping[str, Callable[..., float]]] = {
    "ACTIVATION_CELU": lambda Alpha: 1.0,
    "ACTIVATION_ELU": lambda Alpha: max(1.0, abs(Alpha)),
    "ACTIVATION_GELU": lambda: 1.13,
    "ACTIVATION_HARD_SIGMOID": lambda Alpha, Beta: abs(Alpha),
    "ACTIVATION_HARD_SWISH": lambda Alpha, Beta: max(1.0, abs(2 - Beta), abs(Beta)),
    "ACTIVATION_IDENTITY": lambda: 1.0,
    "ACTIVATION_LEAKY_RELU": lambda Alpha: max(1.0, abs(Alpha)),
    "ACTIVATION_LINEAR": lambda Alpha, Beta: abs(Alpha),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": lambda Alpha, Beta: abs(Alpha * Beta),
    "ACTIVATION_RELU": lambda: 1.0,
    "ACTIVATION_SCALED_ELU": lambda Alpha, Gamma: abs(Gamma) * max(1.0, abs(Alpha)),
    "ACTIVATION_SCALED_TANH": lambda Alpha, Beta: abs(Alpha * Beta),
    "ACTIVATION_SHRINK": lambda Bias, Threshold: 1.0,
    "ACTIVATION_SIGMOID": lambda: 0.25,
    "ACTIVATION_SOFTPLUS": lambda Steepness: 1.0,
    "ACTIVATION_SOFTSIGN": lambda: 1.0,
    "ACTIVATION_SWISH": lambda SigmoidInputScale: 1.1,
    "ACTIVATION_TANH": lambda: 1.0,
    "ACTIVATION_THRESHOLDED_RELU": lambda Alpha: 1.0,
    "ELEMENT_WISE_CLIP": lambda Min, Max: 1.0,
}
"""The greatest slope of each activation, given its attributes, with the exceptions in `slope`."""


def _of_clip(low: Array, high: Array, Min: float, Max: float) -> Array:
    return np.where((high < Min) | (low > Max), 0.0, 1.0)


def _of_elu(low: Array, high: Array, Alpha: float) -> Array:
    below = abs(Alpha) * np.exp(np.minimum(high, 0.0))
    return np.where(low >= 0, 1.0, np.where(high < 0, below, np.fmax(below, 1.0)))


def _of_gelu(low: Array, high: Array) -> Array:
    # The slope is P + x p, with the normal distribution P <= p * sqrt(pi / 2) below 0, its density
    # p and p < 0.4 exp(-x^2 / 2).
    size = np.fmax(-high, 0.0)
    return np.where(high < -1, np.exp(-np.square(size) / 2) * (0.502 + 0.4 * size), 1.13)


def _of_hard_sigmoid(low: Array, high: Array, Alpha: float, Beta: float) -> Array:
    ends = Alpha * low + Beta, Alpha * high + Beta
    saturated = (np.fmax(*ends) < 0) | (np.fmin(*ends) > 1)
    return np.where(saturated, 0.0, abs(Alpha))


def _of_hard_swish(low: Array, high: Array, Alpha: float, Beta: float) -> Array:
    ends = Alpha * low + Beta, Alpha * high + Beta
    elsewhere = _SLOPES["ACTIVATION_HARD_SWISH"](Alpha, Beta)
    return np.where(np.fmax(*ends) < 0, 0.0, np.where(np.fmin(*ends) > 1, 1.0, elsewhere))


def _of_leaky_relu(low: Array, high: Array, Alpha: float) -> Array:
    either = max(1.0, abs(Alpha))
    return np.where(low >= 0, 1.0, np.where(high < 0, abs(Alpha), either))


def _of_parametric_softplus(low: Array, high: Array, Alpha: float, Beta: float) -> Array:
    return abs(Alpha * Beta) * _sigmoid(np.fmax(Beta * low, Beta * high))


def _of_scaled_tanh(low: Array, high: Array, Alpha: float, Beta: float) -> Array:
    return abs(Alpha * Beta) * _of_tanh(Beta * low, Beta * high)


def _of_softplus(low: Array, high: Array, Steepness: float) -> Array:
    return _sigmoid(np.fmax(Steepness * low, Steepness * high))


def _of_swish(low: Array, high: Array, SigmoidInputScale: float) -> Array:
    # With y = s x, the slope is g(y) (1 + y (1 - g(y))), and g(y) < exp(y) for the sigmoid g.
    greatest = np.fmax(SigmoidInputScale * low, SigmoidInputScale * high)
    return np.where(greatest < -2, np.exp(greatest) * (1 - greatest), 1.1)


def _of_tanh(low: Array, high: Array) -> Array:
    # The argument of `tanh` that is nearest to 0 has the greatest slope.
    ends = np.fmin(low, high), np.fmax(low, high)
    return 1 / np.square(np.cosh(_nearest_to_zero(*ends)))


def _nearest_to_zero(low: Array, high: Array) -> Array:
    return np.fmax(np.fmax(low, -high), 0.0)


def _sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


_LOCAL_SLOPES: Final[Mapping[str, Callable[..., Array]]] = {
    "ACTIVATION_ELU": _of_elu,
    "ACTIVATION_GELU": _of_gelu,
    "ACTIVATION_HARD_SIGMOID": _of_hard_sigmoid,
    "ACTIVATION_HARD_SWISH": _of_hard_swish,
    "ACTIVATION_LEAKY_RELU": _of_leaky_relu,
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _of_parametric_softplus,
    "ACTIVATION_RELU": lambda low, high: np.where(high < 0, 0.0, 1.0),
    "ACTIVATION_SCALED_ELU": lambda low, high, Alpha, Gamma: abs(Gamma) * _of_elu(low, high, Alpha),
    "ACTIVATION_SCALED_TANH": _of_scaled_tanh,
    "ACTIVATION_SHRINK": lambda low, high, Bias, Threshold: np.where(
        (low > -Threshold) & (high < Threshold), 0.0, 1.0
    ),
    "ACTIVATION_SIGMOID": lambda low, high: 0.25 / np.cosh(_nearest_to_zero(low, high) / 2) ** 2,
    "ACTIVATION_SOFTPLUS": _of_softplus,
    "ACTIVATION_SOFTSIGN": lambda low, high: 1 / np.square(1 + _nearest_to_zero(low, high)),
    "ACTIVATION_SWISH": _of_swish,
    "ACTIVATION_TANH": _of_tanh,
    "ACTIVATION_THRESHOLDED_RELU": lambda low, high, Alpha: np.where(high < Alpha, 0.0, 1.0),
    "ELEMENT_WISE_CLIP": _of_clip,
}
"""The greatest slope between two arguments, for activations that are flat somewhere."""


def slope(activation: Mapping[str, Any] | None) -> float:
    """Return the greatest slope of an activation; 1 without an activation.

    The slope is no bound at the jumps of SHRINK and THRESHOLDED_RELU, nor for CELU with a negative
    Alpha.
    """
    if activation is None:
        return 1.0
    return _SLOPES[activation["operator"]](**attributes_of(activation))


def local_slope(activation: Mapping[str, Any], low: Array, high: Array) -> Array | float:
    """Return the greatest slope of an activation between two arguments, as `slope` does.

    Where an argument is NaN or infinite, it may be as great as anywhere.
    """
    anywhere = slope(activation)
    function = _LOCAL_SLOPES.get(activation["operator"])
    if function is None or not np.isfinite(anywhere):
        return anywhere
    with np.errstate(all="ignore"):
        within = function(low, high, **attributes_of(activation))
        known = np.isfinite(low) & np.isfinite(high) & np.isfinite(within)
        return np.where(known, np.fmin(within, anywhere), anywhere)
