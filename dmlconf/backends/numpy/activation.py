"""Activations: functions of one number, as operators of their own and fused into others.

Source: the pages of the DML_ACTIVATION_..._OPERATOR_DESC; NaN, infinities and integers were
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from dmlconf.backends.numpy.activation_error import ERRORS
from dmlconf.backends.numpy.blocks import in_blocks
from dmlconf.backends.numpy.erf import erfc
from dmlconf.backends.numpy.rounding import ANY_RESULT, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "FORMULAS",
    "activation_celu",
    "activation_elu",
    "activation_gelu",
    "activation_hard_sigmoid",
    "activation_hard_swish",
    "activation_identity",
    "activation_leaky_relu",
    "activation_linear",
    "activation_parameterized_relu",
    "activation_parameterized_relu_interval",
    "activation_parametric_softplus",
    "activation_relu",
    "activation_scaled_elu",
    "activation_scaled_tanh",
    "activation_shrink",
    "activation_sigmoid",
    "activation_softplus",
    "activation_softsign",
    "activation_swish",
    "activation_tanh",
    "activation_thresholded_relu",
    "fused",
    "fused_formula",
    "fused_magnitude",
    "slope",
]


_LARGE_EXPONENT: Final = 80.0
"""Beyond this kernels take `log(1 + exp(x))` for `x`, which FLOAT32 cannot tell from it."""


def _celu(x: Array, Alpha: float) -> Array:
    # fmax and fmin take the number where the other one is NaN.
    return np.fmax(0.0, x) + np.fmin(0.0, Alpha * np.expm1(x / Alpha))


def _elu(x: Array, Alpha: float) -> Array:
    if 0 < Alpha < np.inf:
        # Without a choice, in half the time. The sign is that of x, of zero as well.
        return np.copysign(np.maximum(x, 0) + Alpha * np.expm1(np.minimum(x, 0)), x)
    return np.where(x < 0, Alpha * np.expm1(np.minimum(x, 0)), x)


def _gelu(x: Array) -> Array:
    # erfc(-x) is 1 + erf(x), of which it keeps all digits where x is negative.
    value: Array = 0.5 * x * erfc(x * -(0.5**0.5))
    return value


def _hard_sigmoid(x: Array, Alpha: float, Beta: float) -> Array:
    return np.fmax(0.0, np.minimum(Alpha * x + Beta, 1.0))


def _hard_swish(x: Array, Alpha: float, Beta: float) -> Array:
    return x * _hard_sigmoid(x, Alpha, Beta)


def _identity(x: Array) -> Array:
    return x


def _leaky_relu(x: Array, Alpha: float) -> Array:
    if Alpha == 0 or not np.isfinite(Alpha):
        # The product may be NaN, which must not be chosen.
        return np.where(x < 0, Alpha * x, x)
    choose = np.maximum if Alpha <= 1 else np.minimum
    found: Array = choose(x, Alpha * x)
    # This makes -0 +0.
    found += 0
    return found


def _log_1_and_exp(x: Array) -> Array:
    """Return `log(1 + exp(x))`, several times as fast as `logaddexp`."""
    # The exponent is never positive, so nothing overflows.
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
    # Measured: the other branch is also that of NaN.
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
"""The functions by operator: of FLOAT64 numbers and of the operator's attributes by name."""

_ROUNDING_ONCE: Final = frozenset(
    {"ACTIVATION_IDENTITY", "ACTIVATION_LEAKY_RELU", "ACTIVATION_THRESHOLDED_RELU"}
)
"""Those which round the exact result, if at all, so that FLOAT32 gives it as FLOAT64 does."""


def _fused_relu(x: Array) -> Array:
    # Measured in every host: NaN and the negative infinity become NaN, and -1 becomes -0.
    return x * (x > 0)


def _fused_clip(x: Array, Min: float, Max: float) -> Array:
    return np.fmax(np.fmin(x, Max), Min)


_FUSED: Final[Mapping[str, Callable[..., Array]]] = {
    **FORMULAS,
    "ACTIVATION_RELU": _fused_relu,
    "ELEMENT_WISE_CLIP": _fused_clip,
}


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


_JUMPS: Final[Mapping[str, Callable[..., tuple[float, float]]]] = {
    "ACTIVATION_SHRINK": lambda Bias, Threshold: (-Threshold, Threshold),
    "ACTIVATION_THRESHOLDED_RELU": lambda Alpha: (Alpha or np.nan,) * 2,
}
"""Where activations jump; NaN for nowhere."""

_NEAR_JUMP: Final = 64.0
"""How many last places of its magnitude a sum may be from a jump, and be taken for beyond it."""


def fused(values: Array, activation: Mapping[str, Any] | None) -> Array:
    """Return what a fused activation makes of FLOAT64 values; the values where there is none.

    Args:
        values: of any shape.
        activation: a nested operator: its name as `operator`, and its attributes.
    """
    if activation is None:
        return values
    with np.errstate(all="ignore"):
        return fused_formula(activation)(values)


def fused_formula(activation: Mapping[str, Any]) -> Callable[[Array], Array]:
    """Return the function of FLOAT64 values that a fused activation is."""
    return partial(_FUSED[activation["operator"]], **_attributes(activation))


def slope(activation: Mapping[str, Any] | None) -> float:
    """Return the most that an activation magnifies a small error of its argument.

    It does not hold across the jumps of SHRINK and THRESHOLDED_RELU.
    """
    if activation is None:
        return 1.0
    return _SLOPES[activation["operator"]](**_attributes(activation))


def fused_magnitude(
    values: Array, magnitude: Array, activation: Mapping[str, Any] | None, dtype: np.dtype[Any]
) -> Array:
    """Return the magnitude of a sum behind a fused activation, for the rule `accumulate`.

    Args:
        values: the sums, FLOAT64.
        magnitude: the sums of absolute values.
        activation: the activation, whose own error and last rounding are added; or None.
        dtype: the output's type, whose roundings a magnitude counts in.
    """
    if activation is None:
        return magnitude
    with np.errstate(all="ignore"):
        error = ERRORS[activation["operator"]](values, **_attributes(activation))
        own: Array = np.where(np.isfinite(error), error, 0.0) / float(np.finfo(dtype).eps)
        steepness: Array | float = slope(activation)
        if activation["operator"] == "ACTIVATION_CELU" and activation["Alpha"] < 0:
            # The exponential then grows where its argument is negative.
            steepness = np.maximum(steepness, np.exp(np.minimum(values, 0) / activation["Alpha"]))
        found = steepness * magnitude + own + np.abs(fused(values, activation))
        if dtype == np.float16:
            # FLOAT16 may hold the sum, as its largest number or as infinity.
            beyond = np.isfinite(values) & (np.abs(values) > float(np.finfo(dtype).max))
            limit = fused(np.where(beyond, np.copysign(np.inf, values), 0.0), activation)
            found = np.where(beyond & ~np.isfinite(limit), ANY_RESULT, found)
        if activation["operator"] in _JUMPS:
            # Only what rounding may carry over the jump: a sum exactly there is one of integers.
            jump = _JUMPS[activation["operator"]](**_attributes(activation))
            gap = np.fmin(np.abs(values - jump[0]), np.abs(values - jump[1]))
            near = (gap > 0) & (gap <= magnitude * _NEAR_JUMP * float(np.finfo(dtype).eps))
            found = np.where(near, ANY_RESULT, found)
        return found


def _attributes(activation: Mapping[str, Any]) -> dict[str, float]:
    """Return the attributes as the FLOAT32 numbers that DirectML takes."""
    return {
        name: float(np.float32(value))
        for name, value in activation.items()
        if name != "operator" and value is not None
    }


def _reference(operator: str) -> Callable[..., Array]:
    """Return the reference function of an activation with one input."""

    def function(InputTensor: Array, OutputTensor: TensorDesc, **attributes: float) -> Array:
        formula, fields = FORMULAS[operator], _attributes(attributes)
        wide = np.float32 if operator in _ROUNDING_ONCE else np.float64
        dtype = InputTensor.dtype

        def computed(elements: Array) -> Array:
            found = formula(elements.astype(wide, copy=False), **fields)
            # Through FLOAT32, in which kernels compute.
            return found if dtype == np.float32 else found.astype(np.float32, copy=False)

        with np.errstate(all="ignore"):
            return in_blocks(computed, InputTensor, dtype=dtype)

    return function


def _interval(operator: str) -> Callable[..., tuple[Array, Array]]:
    """Return the function of an activation's least and greatest right values."""

    def function(
        InputTensor: Array, OutputTensor: TensorDesc, **attributes: float
    ) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            error = ERRORS[operator](_wide(InputTensor), **_attributes(attributes))
        values = _alone(operator, InputTensor, attributes)
        return rounded_interval(values, error, InputTensor.dtype)

    return function


activation_celu = _reference("ACTIVATION_CELU")
activation_celu_interval = _interval("ACTIVATION_CELU")
activation_elu = _reference("ACTIVATION_ELU")
activation_elu_interval = _interval("ACTIVATION_ELU")
activation_gelu = _reference("ACTIVATION_GELU")
activation_gelu_interval = _interval("ACTIVATION_GELU")
activation_hard_sigmoid = _reference("ACTIVATION_HARD_SIGMOID")
activation_hard_sigmoid_interval = _interval("ACTIVATION_HARD_SIGMOID")
activation_hard_swish = _reference("ACTIVATION_HARD_SWISH")
activation_hard_swish_interval = _interval("ACTIVATION_HARD_SWISH")
activation_identity = _reference("ACTIVATION_IDENTITY")
activation_identity_interval = _interval("ACTIVATION_IDENTITY")
activation_leaky_relu = _reference("ACTIVATION_LEAKY_RELU")
activation_leaky_relu_interval = _interval("ACTIVATION_LEAKY_RELU")
activation_linear = _reference("ACTIVATION_LINEAR")
activation_linear_interval = _interval("ACTIVATION_LINEAR")
activation_parametric_softplus = _reference("ACTIVATION_PARAMETRIC_SOFTPLUS")
activation_parametric_softplus_interval = _interval("ACTIVATION_PARAMETRIC_SOFTPLUS")
activation_relu_interval = _interval("ACTIVATION_RELU")
activation_scaled_elu = _reference("ACTIVATION_SCALED_ELU")
activation_scaled_elu_interval = _interval("ACTIVATION_SCALED_ELU")
activation_scaled_tanh = _reference("ACTIVATION_SCALED_TANH")
activation_scaled_tanh_interval = _interval("ACTIVATION_SCALED_TANH")
activation_shrink_interval = _interval("ACTIVATION_SHRINK")
activation_sigmoid = _reference("ACTIVATION_SIGMOID")
activation_sigmoid_interval = _interval("ACTIVATION_SIGMOID")
activation_softplus = _reference("ACTIVATION_SOFTPLUS")
activation_softplus_interval = _interval("ACTIVATION_SOFTPLUS")
activation_softsign = _reference("ACTIVATION_SOFTSIGN")
activation_softsign_interval = _interval("ACTIVATION_SOFTSIGN")
activation_swish = _reference("ACTIVATION_SWISH")
activation_swish_interval = _interval("ACTIVATION_SWISH")
activation_tanh = _reference("ACTIVATION_TANH")
activation_tanh_interval = _interval("ACTIVATION_TANH")
activation_thresholded_relu = _reference("ACTIVATION_THRESHOLDED_RELU")
activation_thresholded_relu_interval = _interval("ACTIVATION_THRESHOLDED_RELU")


def activation_relu(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """Return zero for negative elements, and for NaN."""
    zero = InputTensor.dtype.type(0)
    found: Array = np.fmax(InputTensor, zero)
    # This makes -0 +0.
    found += zero
    return found


def activation_shrink(
    InputTensor: Array, OutputTensor: TensorDesc, Bias: float, Threshold: float
) -> Array:
    """Return elements outside the threshold, moved by Bias toward zero; zero for NaN.

    Integers are computed in FLOAT32, rounded to the nearest, halves to even, and limited to what
    their type holds.
    """
    dtype = InputTensor.dtype
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            attributes = {"Bias": Bias, "Threshold": Threshold}
            return _narrowed(_alone("ACTIVATION_SHRINK", InputTensor, attributes), dtype)
        moved = _shrink(InputTensor.astype(np.float32), Bias, Threshold)
        limits = np.iinfo(dtype)
        limited: Array = np.clip(np.rint(moved.astype(np.float64)), limits.min, limits.max)
    return limited.astype(dtype)


def activation_parameterized_relu(
    InputTensor: Array, SlopeTensor: Array, OutputTensor: TensorDesc
) -> Array:
    """Return negative elements times their slopes; integers wrap around."""
    with np.errstate(all="ignore"):
        found: Array = np.where(InputTensor < 0, SlopeTensor * InputTensor, InputTensor)
    return found


def activation_parameterized_relu_interval(
    InputTensor: Array, SlopeTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the product rounded either way."""
    wide = activation_parameterized_relu(_wide(InputTensor), _wide(SlopeTensor), OutputTensor)
    return rounded_interval(wide, 0.0, InputTensor.dtype)


def _alone(operator: str, tensor: Array, attributes: Mapping[str, float]) -> Array:
    """Return what an activation makes of a tensor as an operator of its own, FLOAT64."""
    with np.errstate(all="ignore"):
        found: Array = FORMULAS[operator](_wide(tensor), **_attributes(attributes))
    return found


def _wide(tensor: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return tensor.astype(np.float64)


def _narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(all="ignore"):
        # Through FLOAT32, in which kernels compute.
        return values.astype(np.float32).astype(dtype, copy=False)
