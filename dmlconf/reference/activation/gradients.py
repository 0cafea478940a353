"""Gradients of activations."""

from __future__ import annotations

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "activation_relu_grad",
]


def activation_relu_grad(
    InputTensor: Array, InputGradientTensor: Array, OutputGradientTensor: TensorDesc
) -> Array:
    """InputTensor {D0, ...}, InputGradientTensor {D0, ...} -> OutputGradientTensor {D0, ...};
    FLOAT32, FLOAT16, INT32 to INT8

    Return the gradient where the input is greater than zero, and zero elsewhere.

    Source: the page of DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC. Measured: the result is zero where
    the input is NaN, and also where an input that is not positive meets an infinite or NaN
    gradient.
    """
    zero = InputGradientTensor.dtype.type(0)
    gradient: Array = np.where(InputTensor > 0, InputGradientTensor, zero)
    return gradient
