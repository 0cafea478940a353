"""Batch normalisation, by a mean and a variance that are given or, in training, computed.

Its gradients are in `batch_gradients`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.fields import of_fields
from dmlconf.reference.normalization.parameters import deviation_of, shared_dimensions
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "BatchNormalizationDesc",
    "BatchNormalizationTrainingDesc",
    "batch_normalization",
    "batch_normalization_training",
]


@dataclass(frozen=True, slots=True)
class BatchNormalizationDesc:
    """The fields of DML_BATCH_NORMALIZATION_OPERATOR_DESC."""

    InputTensor: Array
    MeanTensor: Array
    VarianceTensor: Array
    ScaleTensor: Array
    BiasTensor: Array
    OutputTensor: TensorDesc
    Spatial: bool
    Epsilon: float
    FusedActivation: Mapping[str, Any] | None


@of_fields(BatchNormalizationDesc)
def batch_normalization(desc: BatchNormalizationDesc) -> Array:
    """InputTensor {D0, D1, ...}, MeanTensor {1 or D0, 1 or D1, ...},
    VarianceTensor {1 or D0, 1 or D1, ...}, ScaleTensor {1 or D0, 1 or D1, ...},
    BiasTensor {1 or D0, 1 or D1, ...} -> OutputTensor {D0, D1, ...}; FLOAT32, FLOAT16

    Return `FusedActivation(scale * (x - mean) / sqrt(variance + Epsilon) + bias)`, without
    FusedActivation if it is absent.

    Spatial has no effect.

    Source: the page of DML_BATCH_NORMALIZATION_OPERATOR_DESC.
    """

    def normalized(tensor: Array, mean: Array, variance: Array, scale: Array, bias: Array) -> Array:
        values = wide(tensor)
        values -= wide(mean)
        values *= wide(scale) / deviation_of(variance, desc.Epsilon)
        values += wide(bias)
        return fused(values, desc.FusedActivation)

    tensors = (
        desc.InputTensor,
        desc.MeanTensor,
        desc.VarianceTensor,
        desc.ScaleTensor,
        desc.BiasTensor,
    )
    with np.errstate(all="ignore"):
        return in_slices(normalized, *tensors, dtype=desc.OutputTensor.DataType.dtype)


@dataclass(frozen=True, slots=True)
class BatchNormalizationTrainingDesc:
    """The fields of DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC."""

    InputTensor: Array
    ScaleTensor: Array
    BiasTensor: Array
    FusedAddTensor: Array | None
    OutputTensor: TensorDesc
    OutputMeanTensor: TensorDesc
    OutputVarianceTensor: TensorDesc
    Epsilon: float
    FusedActivation: Mapping[str, Any] | None


@of_fields(BatchNormalizationTrainingDesc)
def batch_normalization_training(
    desc: BatchNormalizationTrainingDesc,
) -> tuple[Array, Array, Array]:
    """InputTensor {D0, D1, ...}, ScaleTensor {1 or D0, 1 or D1, ...},
    BiasTensor {1 or D0, 1 or D1, ...}, [FusedAddTensor {D0, D1, ...}] ->
    OutputTensor {D0, D1, ...}, OutputMeanTensor {1 or D0, 1 or D1, ...},
    OutputVarianceTensor {1 or D0, 1 or D1, ...}; FLOAT32, FLOAT16

    Return the normalised input, and the input's mean and variance.

    Mean and variance are computed along the dimensions in which the scale has size 1. The variance
    is that of a population: the mean of `(x - mean) ** 2`. With FusedActivation and FusedAddTensor
    where they are present, the first output is

        FusedActivation(scale * (x - mean) / sqrt(variance + Epsilon) + bias + FusedAddTensor)

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC; the kind of variance was
    measured.
    """
    over = shared_dimensions(desc.ScaleTensor)
    with np.errstate(all="ignore"):
        values = wide(desc.InputTensor)
        mean = values.mean(over, keepdims=True)
        values -= mean
        variance = np.square(values).mean(over, keepdims=True)
        values *= wide(desc.ScaleTensor) / deviation_of(variance, desc.Epsilon)
        values += wide(desc.BiasTensor)
        if desc.FusedAddTensor is not None:
            values += desc.FusedAddTensor
        return (
            fused(values, desc.FusedActivation).astype(desc.OutputTensor.DataType.dtype),
            mean.astype(desc.OutputMeanTensor.DataType.dtype),
            variance.astype(desc.OutputVarianceTensor.DataType.dtype),
        )
