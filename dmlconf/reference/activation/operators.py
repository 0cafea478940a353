"""Activations as operators of their own, without softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.formulas import FORMULAS, attributes_of
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import narrowed, wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "activated",
    "activation_celu",
    "activation_elu",
    "activation_gelu",
    "activation_hard_sigmoid",
    "activation_hard_swish",
    "activation_identity",
    "activation_leaky_relu",
    "activation_linear",
    "activation_parameterized_relu",
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
"""Activations that round at most once, so that they need no FLOAT64."""


def _reference(operator: str, formula: str, special: str = "") -> Callable[..., Array]:
    """Return the reference function of an activation with one input tensor.

    Args:
        formula, special: texts for the docstring; `special` tells of NaN and infinities.
    """

    def function(InputTensor: Array, OutputTensor: TensorDesc, **attributes: float) -> Array:
        fields = attributes_of(attributes)
        computing = np.float32 if operator in _ROUNDING_ONCE else np.float64
        dtype = InputTensor.dtype

        def computed(elements: Array) -> Array:
            output = FORMULAS[operator](elements.astype(computing, copy=False), **fields)
            # Kernels compute in FLOAT32, so FLOAT16 results are rounded twice.
            return output if dtype == np.float32 else output.astype(np.float32, copy=False)

        with np.errstate(all="ignore"):
            return in_blocks(computed, InputTensor, dtype=dtype)

    function.__name__ = operator.lower()
    function.__doc__ = f"""InputTensor {{D0, ...}} -> OutputTensor {{D0, ...}}; FLOAT32, FLOAT16

    Return `{formula}` of each element x{f"; {special}" if special else ""}.

    Source: the page of DML_{operator}_OPERATOR_DESC; NaN and infinities were measured.
    """
    return function


activation_celu = _reference(
    "ACTIVATION_CELU",
    "max(0, x) + min(0, Alpha (exp(x / Alpha) - 1))",
    "`max` and `min` give 0 if their other operand is NaN",
)
activation_elu = _reference("ACTIVATION_ELU", "x if x >= 0 else Alpha (exp(x) - 1)")
activation_gelu = _reference("ACTIVATION_GELU", "0.5 x (1 + erf(x / sqrt(2)))")
activation_hard_sigmoid = _reference(
    "ACTIVATION_HARD_SIGMOID",
    "max(0, min(Alpha x + Beta, 1))",
    "0 if `Alpha x + Beta` is NaN",
)
activation_hard_swish = _reference(
    "ACTIVATION_HARD_SWISH",
    "x max(0, min(Alpha x + Beta, 1))",
    "`max` gives 0 if `Alpha x + Beta` is NaN",
)
activation_identity = _reference("ACTIVATION_IDENTITY", "x")
activation_leaky_relu = _reference("ACTIVATION_LEAKY_RELU", "x if x >= 0 else Alpha x")
activation_linear = _reference("ACTIVATION_LINEAR", "Alpha x + Beta")
activation_parametric_softplus = _reference(
    "ACTIVATION_PARAMETRIC_SOFTPLUS", "Alpha log(1 + exp(Beta x))"
)
activation_scaled_elu = _reference(
    "ACTIVATION_SCALED_ELU", "Gamma x if x >= 0 else Gamma Alpha (exp(x) - 1)"
)
activation_scaled_tanh = _reference("ACTIVATION_SCALED_TANH", "Alpha tanh(Beta x)")
activation_sigmoid = _reference("ACTIVATION_SIGMOID", "1 / (1 + exp(-x))")
activation_softplus = _reference(
    "ACTIVATION_SOFTPLUS",
    "log(1 + exp(Steepness x)) / Steepness",
    "x if `Steepness x` is NaN or at least 80",
)
activation_softsign = _reference("ACTIVATION_SOFTSIGN", "x / (1 + abs(x))")
activation_swish = _reference("ACTIVATION_SWISH", "x / (1 + exp(-SigmoidInputScale x))")
activation_tanh = _reference("ACTIVATION_TANH", "tanh(x)")
activation_thresholded_relu = _reference("ACTIVATION_THRESHOLDED_RELU", "0 if x <= Alpha else x")


def activation_relu(InputTensor: Array, OutputTensor: TensorDesc) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32 to INT8

    Return `max(0, x)` of each element; zero for NaN.

    Source: the page of DML_ACTIVATION_RELU_OPERATOR_DESC; NaN was measured.
    """
    # NumPy's `fmax` is faster for two tensors than for a tensor and a number.
    output: Array = np.fmax(InputTensor, np.zeros_like(InputTensor))
    # Adding 0 turns -0 into +0.
    output += InputTensor.dtype.type(0)
    return output


def activation_shrink(
    InputTensor: Array, OutputTensor: TensorDesc, Bias: float, Threshold: float
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16, INT32 to INT8, UINT32 to
    UINT8

    Return `x - Bias if x > Threshold else x + Bias if x < -Threshold else 0`; zero for NaN.

    For integer tensors the result is computed in FLOAT32, rounded to the nearest integer, halves to
    even, and clamped to the type. A NaN result becomes 0.

    Source: the page of DML_ACTIVATION_SHRINK_OPERATOR_DESC; integers and NaN were measured.
    """
    dtype = InputTensor.dtype
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            attributes = {"Bias": Bias, "Threshold": Threshold}
            return narrowed(activated("ACTIVATION_SHRINK", InputTensor, attributes), dtype)
        moved = FORMULAS["ACTIVATION_SHRINK"](InputTensor.astype(np.float32), Bias, Threshold)
        limits = np.iinfo(dtype)
        whole = np.rint(np.nan_to_num(moved.astype(np.float64), nan=0.0))
        limited: Array = np.clip(whole, limits.min, limits.max)
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


def activated(operator: str, tensor: Array, attributes: Mapping[str, float]) -> Array:
    """Return the elements of a tensor after an activation of `FORMULAS`, FLOAT64."""
    with np.errstate(all="ignore"):
        output: Array = FORMULAS[operator](wide(tensor), **attributes_of(attributes))
    return output
