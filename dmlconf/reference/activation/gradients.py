"""The gradient of RELU, the only activation whose gradient is an operator."""

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

    Return `gradient if input > 0 else 0`: 0 for a NaN input, even if the gradient is infinite or
    NaN.

    Source: the page of DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC; NaN and infinities were measured.
    """
    zero = InputGradientTensor.dtype.type(0)
    gradient: Array = np.where(InputTensor > 0, InputGradientTensor, zero)
    return gradient
