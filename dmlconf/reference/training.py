"""ADAM_OPTIMIZER, which updates the weights of a model in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "AdamOptimizerDesc",
    "adam_optimizer",
    "bias_correction",
    "moving_average",
]


@dataclass(frozen=True, slots=True)
class AdamOptimizerDesc:
    """The fields of DML_ADAM_OPTIMIZER_OPERATOR_DESC."""

    InputParametersTensor: Array
    InputFirstMomentTensor: Array
    InputSecondMomentTensor: Array
    GradientTensor: Array
    TrainingStepTensor: Array
    OutputParametersTensor: TensorDesc
    OutputFirstMomentTensor: TensorDesc
    OutputSecondMomentTensor: TensorDesc
    LearningRate: float
    Beta1: float
    Beta2: float
    Epsilon: float


@of_fields(AdamOptimizerDesc)
def adam_optimizer(desc: AdamOptimizerDesc) -> tuple[Array, Array, Array]:
    """InputParametersTensor {D0, ...}, InputFirstMomentTensor {D0, ...},
    InputSecondMomentTensor {D0, ...}, GradientTensor {D0, ...}, TrainingStepTensor {1, ...} ->
    OutputParametersTensor {D0, ...}, OutputFirstMomentTensor {D0, ...},
    OutputSecondMomentTensor {D0, ...}; FLOAT32, FLOAT16; TrainingStepTensor: UINT32

    Return the parameters X, and the moments M and V of their gradient G, after step T of Adam:

        M = Beta1 M + (1 - Beta1) G
        V = Beta2 V + (1 - Beta2) G G
        Alpha = sqrt(1 - Beta2^T) / (1 - Beta1^T), or 1 in step 0
        X = X - LearningRate Alpha M / (sqrt(V) + Epsilon)

    X is computed from M and V before they are rounded to their data type. An infinite moment
    becomes NaN if its Beta is at most 1.

    Source: the page of DML_ADAM_OPTIMIZER_OPERATOR_DESC; infinities and Alpha in step 0 were
    measured.
    """

    def updated_m(m: Array, g: Array) -> Array:
        return moving_average(m, g.astype(np.float64), single(desc.Beta1))

    def updated_v(v: Array, g: Array) -> Array:
        return moving_average(v, np.square(g, dtype=np.float64), single(desc.Beta2))

    def updated_x(x: Array, m: Array, v: Array, g: Array) -> Array:
        divisor = np.sqrt(updated_v(v, g)) + single(desc.Epsilon)
        parameters: Array = x - rate * updated_m(m, g) / divisor
        return parameters

    x, m, v = desc.InputParametersTensor, desc.InputFirstMomentTensor, desc.InputSecondMomentTensor
    g, dtype = desc.GradientTensor, desc.OutputParametersTensor.DataType.dtype
    with np.errstate(all="ignore"):
        rate = single(desc.LearningRate) * bias_correction(desc)
        return (
            in_blocks(updated_x, x, m, v, g, dtype=dtype),
            in_blocks(updated_m, m, g, dtype=dtype),
            in_blocks(updated_v, v, g, dtype=dtype),
        )


def moving_average(old: Array, new: Array, decay: float) -> Array:
    """Return `decay * old + (1 - decay) * new`, FLOAT64.

    Measured: DirectML computes `old + (1 - decay) * (new - old)`, which is NaN if `old` is infinite
    and the decay at most 1. Here this formula is used only if `old` is infinite, or `decay` is
    infinite or NaN, since it may lose a small `new`: with decay 0, `old` 1 and `new` 2^-54 it gives
    0.
    """
    if not np.isfinite(decay):
        return old + (1 - decay) * (new - old)
    moment = decay * old.astype(np.float64) + (1 - decay) * new
    return np.where(np.isinf(old), old + (1 - decay) * (new - old), moment)


def bias_correction(desc: AdamOptimizerDesc) -> float:
    """Return the Alpha of `adam_optimizer`."""
    count = float(desc.TrainingStepTensor.ravel()[0])
    if count == 0:
        return 1.0
    first, second = (1 - np.float64(single(beta)) ** count for beta in (desc.Beta1, desc.Beta2))
    return float(np.sqrt(second) / first)
