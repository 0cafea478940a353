"""Gradients of batch normalisation for its input, its scale and its bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.normalization.parameters import deviation_of, shared_dimensions
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "BatchNormalizationGradDesc",
    "batch_normalization_grad",
    "batch_normalization_training_grad",
    "elements_over",
    "parameter_gradients",
]


@dataclass(frozen=True, slots=True)
class BatchNormalizationGradDesc:
    """The fields of BATCH_NORMALIZATION_GRAD, and of BATCH_NORMALIZATION_TRAINING_GRAD as well."""

    InputTensor: Array
    InputGradientTensor: Array
    MeanTensor: Array
    VarianceTensor: Array
    ScaleTensor: Array
    OutputGradientTensor: TensorDesc
    OutputScaleGradientTensor: TensorDesc
    OutputBiasGradientTensor: TensorDesc
    Epsilon: float


@of_fields(BatchNormalizationGradDesc)
def batch_normalization_grad(desc: BatchNormalizationGradDesc) -> tuple[Array, Array, Array]:
    """InputTensor {D0, D1, ...}, InputGradientTensor {D0, D1, ...},
    MeanTensor {1 or D0, 1 or D1, ...}, VarianceTensor {1 or D0, 1 or D1, ...},
    ScaleTensor {1 or D0, 1 or D1, ...} -> OutputGradientTensor {D0, D1, ...},
    OutputScaleGradientTensor {1 or D0, 1 or D1, ...},
    OutputBiasGradientTensor {1 or D0, 1 or D1, ...}; FLOAT32, FLOAT16

    Return the gradients of BATCH_NORMALIZATION for its input, its scale and its bias.

    Sums are along the dimensions in which the scale has size 1. With `g` for InputGradientTensor
    and `d` for `sqrt(variance + Epsilon)`, the gradients are `g * scale / d`,
    `sum(g * (x - mean) / d)` and `sum(g)`.

    Source: the page of DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC.
    """
    with np.errstate(all="ignore"):
        gradient = wide(desc.InputGradientTensor)
        scale, bias = parameter_gradients(
            gradient,
            wide(desc.InputTensor) - wide(desc.MeanTensor),
            shared_dimensions(desc.ScaleTensor),
        )
        deviation = deviation_of(desc.VarianceTensor, desc.Epsilon)
        return _gradients(desc, gradient, scale, bias, deviation)


@of_fields(BatchNormalizationGradDesc)
def batch_normalization_training_grad(
    desc: BatchNormalizationGradDesc,
) -> tuple[Array, Array, Array]:
    """InputTensor {D0, D1, ...}, InputGradientTensor {D0, D1, ...},
    MeanTensor {1 or D0, 1 or D1, ...}, VarianceTensor {1 or D0, 1 or D1, ...},
    ScaleTensor {1 or D0, 1 or D1, ...} -> OutputGradientTensor {D0, D1, ...},
    OutputScaleGradientTensor {1 or D0, 1 or D1, ...},
    OutputBiasGradientTensor {1 or D0, 1 or D1, ...}; FLOAT32, FLOAT16

    Return the gradients of BATCH_NORMALIZATION_TRAINING for its input, scale and bias.

    Means are along the dimensions in which the scale has size 1. With `g` for InputGradientTensor
    and `v` for `variance + Epsilon`, the input's gradient is

        scale / sqrt(v) * (g - mean(g) - (x - MeanTensor) * mean(g * (x - MeanTensor)) / v)

    The others are computed as in BATCH_NORMALIZATION_GRAD.

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC. Measured: MeanTensor is
    used where the page has the mean of the input.
    """
    over = shared_dimensions(desc.ScaleTensor)
    with np.errstate(all="ignore"):
        gradient = wide(desc.InputGradientTensor)
        centred = wide(desc.InputTensor) - wide(desc.MeanTensor)
        sum_of_products, sum_of_gradients = parameter_gradients(gradient, centred, over)
        deviation = deviation_of(desc.VarianceTensor, desc.Epsilon)
        count = elements_over(desc.InputTensor, over)
        centred *= sum_of_products / count / np.square(deviation)
        gradient -= sum_of_gradients / count
        gradient -= centred
        return _gradients(desc, gradient, sum_of_products, sum_of_gradients, deviation)


def _gradients(
    desc: BatchNormalizationGradDesc, gradient: Array, scale: Array, bias: Array, deviation: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of the input, the scale and the bias in their data types.

    `gradient` still lacks the factor ScaleTensor / deviation, and `scale` the factor 1 / deviation.
    """
    gradient = gradient * (wide(desc.ScaleTensor) / deviation)
    return (
        gradient.astype(desc.OutputGradientTensor.DataType.dtype),
        (scale / deviation).astype(desc.OutputScaleGradientTensor.DataType.dtype),
        bias.astype(desc.OutputBiasGradientTensor.DataType.dtype),
    )


def parameter_gradients(
    gradient: Array, centred: Array, over: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the sums of `gradient * centred` and of `gradient` along the axes `over`."""
    return (gradient * centred).sum(over, keepdims=True), gradient.sum(over, keepdims=True)


def elements_over(tensor: Array, over: tuple[int, ...]) -> int:
    """Return the product of a tensor's sizes along the axes `over`."""
    return math.prod(tensor.shape[axis] for axis in over)
