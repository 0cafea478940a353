"""Normalisation by a mean and a variance that several elements share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused, fused_error_scale
from dmlconf.reference.normalization.mean_variance import exact_mean, saturated, variance_loss
from dmlconf.reference.normalization.parameters import (
    deviation_of,
    finite_sum,
    shared_dimensions,
    sizes_of,
    unbounded,
)
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.numbers.rounding import STEP, greatest_product, overflows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "batch_normalization",
    "batch_normalization_error_scale",
    "batch_normalization_training",
    "batch_normalization_training_error_scale",
]


def batch_normalization(
    InputTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    OutputTensor: TensorDesc,
    Spatial: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """InputTensor {D0, D1, ...}, MeanTensor {1 or D0, 1 or D1, ...},
    VarianceTensor {1 or D0, 1 or D1, ...}, ScaleTensor {1 or D0, 1 or D1, ...},
    BiasTensor {1 or D0, 1 or D1, ...} -> OutputTensor {D0, D1, ...}; FLOAT32, FLOAT16

    Return `scale * (x - mean) / sqrt(variance + Epsilon) + bias`, activated.

    All tensors but the input are broadcast along dimensions of size 1. Spatial has no effect.

    Source: the page of DML_BATCH_NORMALIZATION_OPERATOR_DESC.
    """

    def normalized(tensor: Array, mean: Array, variance: Array, scale: Array, bias: Array) -> Array:
        values = wide(tensor) - wide(mean)
        values *= wide(scale) / deviation_of(variance, Epsilon)
        values += wide(bias)
        return fused(values, FusedActivation)

    tensors = InputTensor, MeanTensor, VarianceTensor, ScaleTensor, BiasTensor
    with np.errstate(all="ignore"):
        return in_slices(normalized, *tensors, dtype=OutputTensor.DataType.dtype)


def batch_normalization_error_scale(
    InputTensor: Array,
    MeanTensor: Array,
    VarianceTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    OutputTensor: TensorDesc,
    Spatial: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> ErrorScale:
    """Return what the steps add up: the input, the mean and the bias, each with its factor.

    Derived in docs/bounds.md, Normalisation.
    """
    with np.errstate(all="ignore"):
        scale, deviation = wide(ScaleTensor), deviation_of(VarianceTensor, Epsilon)
        factor = scale / deviation
        mean, bias = wide(MeanTensor), wide(BiasTensor)
        values = (wide(InputTensor) - mean) * factor + bias
        added = sizes_of(InputTensor) + np.abs(mean)
        error_scale = ErrorScale(added * np.abs(factor) + np.abs(bias))
        error_scale = error_scale.overflowing_where(
            overflows(greatest_product(added, scale, 1 / deviation))
        )
        # An infinite factor may be applied to the input and to the mean before their difference.
        error_scale = error_scale.overflowing_where(unbounded(factor, deviation))
        dtype = OutputTensor.DataType.dtype
        return fused_error_scale(values, error_scale, FusedActivation, dtype)


def batch_normalization_training(
    InputTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    FusedAddTensor: Array | None,
    OutputTensor: TensorDesc,
    OutputMeanTensor: TensorDesc,
    OutputVarianceTensor: TensorDesc,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> tuple[Array, Array, Array]:
    """InputTensor {D0, D1, ...}, ScaleTensor {1 or D0, 1 or D1, ...},
    BiasTensor {1 or D0, 1 or D1, ...}, [FusedAddTensor {D0, D1, ...}] ->
    OutputTensor {D0, D1, ...}, OutputMeanTensor {1 or D0, 1 or D1, ...},
    OutputVarianceTensor {1 or D0, 1 or D1, ...}; FLOAT32, FLOAT16

    Return the normalised input, activated, and its mean and variance.

    Mean and variance, that of a population, are taken along the dimensions in which the scale has
    size 1. The first output is `scale * (x - mean) / sqrt(variance + Epsilon) + bias + add`.

    Source: the page of DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC.
    """
    over = shared_dimensions(ScaleTensor)
    with np.errstate(all="ignore"):
        values = wide(InputTensor)
        mean = values.mean(over, keepdims=True)
        values -= mean
        variance = np.square(values).mean(over, keepdims=True)
        values *= wide(ScaleTensor) / deviation_of(variance, Epsilon)
        values += wide(BiasTensor)
        if FusedAddTensor is not None:
            values += FusedAddTensor
        return (
            fused(values, FusedActivation).astype(OutputTensor.DataType.dtype),
            mean.astype(OutputMeanTensor.DataType.dtype),
            variance.astype(OutputVarianceTensor.DataType.dtype),
        )


def batch_normalization_training_error_scale(
    InputTensor: Array,
    ScaleTensor: Array,
    BiasTensor: Array,
    FusedAddTensor: Array | None,
    OutputTensor: TensorDesc,
    OutputMeanTensor: TensorDesc,
    OutputVarianceTensor: TensorDesc,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> tuple[ErrorScale, ErrorScale, ErrorScale]:
    """Return what the steps add up on the way to each of the three outputs.

    Derived in docs/bounds.md, Normalisation.
    """
    over = shared_dimensions(ScaleTensor)
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        size = sizes_of(InputTensor)
        mean_size = size.mean(over, keepdims=True)
        of_sum = overflows(finite_sum(size, over))
        size += mean_size
        centred = wide(InputTensor)
        mean = centred.mean(over, keepdims=True)
        centred -= mean
        squares = np.square(centred)
        variance = squares.mean(over, keepdims=True)
        # The mean's own rounding moves every element, and is squared; FLOAT16 may hold it.
        of_mean = np.square(mean) * 2.0**-10
        cancellation = 8 * STEP * np.square(size)
        spread = (squares + 2 * np.abs(centred) * size + cancellation).mean(over, keepdims=True)
        deviation = deviation_of(variance, Epsilon)
        quotient = np.abs(centred) / deviation
        # Measured: FLOAT16 holds the mean, the differences from it, their variance and its root.
        exact = exact_mean(InputTensor, mean, mean_size * (InputTensor.size // mean.size))
        held = store_sizes(mean, exact)
        held = held + store_sizes(centred, exact & (held == 0))
        held = held / deviation
        root = store_sizes(deviation) + 0.5 * store_sizes(variance) / deviation
        held = held + quotient * (root / deviation + 1)
        error_scale = ErrorScale(size / deviation + 3 * quotient, held)
        error_scale += variance_loss(quotient, variance, Epsilon, dtype)
        error_scale = error_scale.scaled(ScaleTensor) + ErrorScale(sizes_of(BiasTensor))
        factor = wide(ScaleTensor) / deviation
        values = centred * factor + wide(BiasTensor)
        if FusedAddTensor is not None:
            error_scale = error_scale.holding(store_sizes(values)) + ErrorScale(
                2 * sizes_of(FusedAddTensor)
            )
            values += FusedAddTensor
        way = np.fmax(
            greatest_product(size, ScaleTensor, 1 / deviation), squares.sum(over, keepdims=True)
        )
        error_scale = error_scale.overflowing_where(overflows(way) | of_sum)
        # As in BATCH_NORMALIZATION.
        error_scale = error_scale.overflowing_where(unbounded(factor, deviation))
        scale = fused_error_scale(values, error_scale, FusedActivation, dtype)
        added = wide(BiasTensor) + (0.0 if FusedAddTensor is None else wide(FusedAddTensor))
        others = tuple(
            fused(quotient * wide(ScaleTensor) + added, FusedActivation).astype(dtype)
            for quotient in saturated(
                centred, variance, squares.sum(over, keepdims=True), Epsilon, dtype
            )
        )
        return (
            replace(scale, others=others),
            ErrorScale(mean_size, overflows=of_sum),
            ErrorScale(spread, of_mean, overflows=of_sum),
        )
