"""Activations as operators of their own.

An `..._interval` function returns the least and the greatest right values, as the errors of
`activation_error` permit.

Source: the pages of the DML_ACTIVATION_..._OPERATOR_DESC; NaN, infinities and integers were
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.errors import ERRORS
from dmlconf.reference.activation.formulas import FORMULAS, attributes_of
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.numbers.rounding import rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = [
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
]

_ROUNDING_ONCE: Final = frozenset(
    {"ACTIVATION_IDENTITY", "ACTIVATION_LEAKY_RELU", "ACTIVATION_THRESHOLDED_RELU"}
)
"""Those which round the exact result, if at all, so that FLOAT32 gives it as FLOAT64 does."""


def _reference(operator: str, formula: str) -> Callable[..., Array]:
    """Return the reference function of an activation with one input, documented by its formula."""

    def function(InputTensor: Array, OutputTensor: TensorDesc, **attributes: float) -> Array:
        fields = attributes_of(attributes)
        computing = np.float32 if operator in _ROUNDING_ONCE else np.float64
        dtype = InputTensor.dtype

        def computed(elements: Array) -> Array:
            output = FORMULAS[operator](elements.astype(computing, copy=False), **fields)
            # Through FLOAT32, in which kernels compute.
            return output if dtype == np.float32 else output.astype(np.float32, copy=False)

        with np.errstate(all="ignore"):
            return in_blocks(computed, InputTensor, dtype=dtype)

    function.__name__ = operator.lower()
    function.__doc__ = f"""InputTensor {{D0, ...}} -> OutputTensor {{D0, ...}}; FLOAT32, FLOAT16

    Return `{formula}` of each element.

    Source: the page of DML_{operator}_OPERATOR_DESC; NaN and infinities were measured.
    """
    return function


def _interval(operator: str) -> Callable[..., tuple[Array, Array]]:
    """Return the function of an activation's least and greatest right values."""

    def function(
        InputTensor: Array, OutputTensor: TensorDesc, **attributes: float
    ) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            error = ERRORS[operator](wide(InputTensor), **attributes_of(attributes))
        values = _alone(operator, InputTensor, attributes)
        return rounded_interval(values, error, InputTensor.dtype)

    function.__name__ = f"{operator.lower()}_interval"
    function.__doc__ = f"""Return the least and the greatest right values of `{operator.lower()}`.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp, log, rcp).
    """
    return function


activation_celu = _reference("ACTIVATION_CELU", "max(0, x) + min(0, Alpha (exp(x / Alpha) - 1))")
activation_celu_interval = _interval("ACTIVATION_CELU")
activation_elu = _reference("ACTIVATION_ELU", "x if x >= 0 else Alpha (exp(x) - 1)")
activation_elu_interval = _interval("ACTIVATION_ELU")
activation_gelu = _reference("ACTIVATION_GELU", "x / 2 (1 + erf(x / sqrt(2)))")
activation_gelu_interval = _interval("ACTIVATION_GELU")
activation_hard_sigmoid = _reference("ACTIVATION_HARD_SIGMOID", "max(0, min(Alpha x + Beta, 1))")
activation_hard_sigmoid_interval = _interval("ACTIVATION_HARD_SIGMOID")
activation_hard_swish = _reference("ACTIVATION_HARD_SWISH", "x max(0, min(Alpha x + Beta, 1))")
activation_hard_swish_interval = _interval("ACTIVATION_HARD_SWISH")
activation_identity = _reference("ACTIVATION_IDENTITY", "x")
activation_identity_interval = _interval("ACTIVATION_IDENTITY")
activation_leaky_relu = _reference("ACTIVATION_LEAKY_RELU", "x if x >= 0 else Alpha x")
activation_leaky_relu_interval = _interval("ACTIVATION_LEAKY_RELU")
activation_linear = _reference("ACTIVATION_LINEAR", "Alpha x + Beta")
activation_linear_interval = _interval("ACTIVATION_LINEAR")
activation_parametric_softplus = _reference(
    "ACTIVATION_PARAMETRIC_SOFTPLUS", "Alpha log(1 + exp(Beta x))"
)
activation_parametric_softplus_interval = _interval("ACTIVATION_PARAMETRIC_SOFTPLUS")
activation_relu_interval = _interval("ACTIVATION_RELU")
activation_scaled_elu = _reference(
    "ACTIVATION_SCALED_ELU", "Gamma x if x > 0 else Gamma Alpha (exp(x) - 1)"
)
activation_scaled_elu_interval = _interval("ACTIVATION_SCALED_ELU")
activation_scaled_tanh = _reference("ACTIVATION_SCALED_TANH", "Alpha tanh(Beta x)")
activation_scaled_tanh_interval = _interval("ACTIVATION_SCALED_TANH")
activation_shrink_interval = _interval("ACTIVATION_SHRINK")
activation_sigmoid = _reference("ACTIVATION_SIGMOID", "1 / (1 + exp(-x))")
activation_sigmoid_interval = _interval("ACTIVATION_SIGMOID")
activation_softplus = _reference("ACTIVATION_SOFTPLUS", "log(1 + exp(Steepness x)) / Steepness")
activation_softplus_interval = _interval("ACTIVATION_SOFTPLUS")
activation_softsign = _reference("ACTIVATION_SOFTSIGN", "x / (1 + abs(x))")
activation_softsign_interval = _interval("ACTIVATION_SOFTSIGN")
activation_swish = _reference("ACTIVATION_SWISH", "x / (1 + exp(-SigmoidInputScale x))")
activation_swish_interval = _interval("ACTIVATION_SWISH")
activation_tanh = _reference("ACTIVATION_TANH", "tanh(x)")
activation_tanh_interval = _interval("ACTIVATION_TANH")
activation_thresholded_relu = _reference("ACTIVATION_THRESHOLDED_RELU", "x if x > Alpha else 0")
activation_thresholded_relu_interval = _interval("ACTIVATION_THRESHOLDED_RELU")


def activation_relu(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32 to INT8

    Return `max(0, x)` of each element; zero for NaN.

    Source: the page of DML_ACTIVATION_RELU_OPERATOR_DESC; NaN was measured.
    """
    zero = InputTensor.dtype.type(0)
    output: Array = np.fmax(InputTensor, zero)
    # This makes -0 +0.
    output += zero
    return output


def activation_shrink(
    InputTensor: Array, OutputTensor: TensorDesc, Bias: float, Threshold: float
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32 to INT8, UINT32 to
    UINT8

    Return `x - Bias if x > Threshold else x + Bias if x < -Threshold else 0`; zero for NaN.

    Integers are computed in FLOAT32, rounded to the nearest, halves to even, and limited to what
    their type holds.

    Source: the page of DML_ACTIVATION_SHRINK_OPERATOR_DESC; integers and NaN were measured.
    """
    dtype = InputTensor.dtype
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            attributes = {"Bias": Bias, "Threshold": Threshold}
            return _narrowed(_alone("ACTIVATION_SHRINK", InputTensor, attributes), dtype)
        moved = FORMULAS["ACTIVATION_SHRINK"](InputTensor.astype(np.float32), Bias, Threshold)
        limits = np.iinfo(dtype)
        limited: Array = np.clip(np.rint(moved.astype(np.float64)), limits.min, limits.max)
    return limited.astype(dtype)


def activation_parameterized_relu(
    InputTensor: Array, SlopeTensor: Array, OutputTensor: TensorDesc
) -> Array:
    """InputTensor {D0, ...}, SlopeTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16,
    INT32 to INT8

    Return `x if x >= 0 else slope x`; integers wrap around.

    Source: the page of DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC; integers were measured.
    """
    with np.errstate(all="ignore"):
        output: Array = np.where(InputTensor < 0, SlopeTensor * InputTensor, InputTensor)
    return output


def activation_parameterized_relu_interval(
    InputTensor: Array, SlopeTensor: Array, OutputTensor: TensorDesc
) -> tuple[Array, Array]:
    """Return the product rounded either way.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding).
    """
    exact = activation_parameterized_relu(wide(InputTensor), wide(SlopeTensor), OutputTensor)
    return rounded_interval(exact, 0.0, InputTensor.dtype)


def _alone(operator: str, tensor: Array, attributes: Mapping[str, float]) -> Array:
    """Return the activation of a tensor as an operator by itself, FLOAT64."""
    with np.errstate(all="ignore"):
        output: Array = FORMULAS[operator](wide(tensor), **attributes_of(attributes))
    return output


def _narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(all="ignore"):
        # Through FLOAT32, in which kernels compute.
        return values.astype(np.float32).astype(dtype, copy=False)
