"""The interval of ACTIVATION_RELU_GRAD, which permits the reference's output alone."""

from __future__ import annotations

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.activation.gradients import activation_relu_grad
from dmlconf.tensors.datatypes import Array

__all__ = [
    "activation_relu_grad_interval",
]


def activation_relu_grad_interval(
    InputTensor: Array, InputGradientTensor: Array, OutputGradientTensor: TensorDesc
) -> Interval:
    """Return the right gradient as both ends: nothing is rounded."""
    gradient = activation_relu_grad(InputTensor, InputGradientTensor, OutputGradientTensor)
    return gradient, gradient
