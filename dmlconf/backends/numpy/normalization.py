"""Operators that shift and scale elements by their own mean and variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlconf.backends.numpy.activation import fused, fused_magnitude
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["mean_variance_normalization1", "mean_variance_normalization1_magnitude"]


def mean_variance_normalization1(
    InputTensor: Array,
    ScaleTensor: Array | None,
    BiasTensor: Array | None,
    OutputTensor: TensorDesc,
    Axes: Sequence[int],
    NormalizeVariance: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """Return `scale * (x - mean) / sqrt(variance + Epsilon) + bias`, activated.

    Mean and variance are those of the elements along the axes, the variance that of a population.
    Without NormalizeVariance nothing is divided. Scale and bias are broadcast along dimensions of
    size 1.

    Source: the page of DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC; broadcasting was measured.
    """
    with np.errstate(all="ignore"):
        centred, divisor, _ = _statistics(InputTensor, Axes, NormalizeVariance, Epsilon)
        values = _scaled(centred / divisor, ScaleTensor, BiasTensor)
        result: Array = fused(values, FusedActivation).astype(OutputTensor.DataType.dtype)
    return result


def mean_variance_normalization1_magnitude(
    InputTensor: Array,
    ScaleTensor: Array | None,
    BiasTensor: Array | None,
    OutputTensor: TensorDesc,
    Axes: Sequence[int],
    NormalizeVariance: bool,
    Epsilon: float,
    FusedActivation: Mapping[str, Any] | None,
) -> Array:
    """Return what each step of the normalisation adds up: the input, its mean, and the bias."""
    with np.errstate(all="ignore"):
        centred, divisor, mean = _statistics(InputTensor, Axes, NormalizeVariance, Epsilon)
        values = _scaled(centred / divisor, ScaleTensor, BiasTensor)
        terms = (np.abs(InputTensor.astype(np.float64)) + mean) / divisor
        terms = terms + 2 * np.abs(centred / divisor)
        scale = None if ScaleTensor is None else np.abs(ScaleTensor)
        bias = None if BiasTensor is None else np.abs(BiasTensor)
        magnitude = _scaled(terms, scale, bias)
        return fused_magnitude(values, magnitude, FusedActivation, OutputTensor.DataType.dtype)


def _statistics(
    tensor: Array, axes: Sequence[int], divide: bool, epsilon: float
) -> tuple[Array, Array | float, Array]:
    """Return the elements less their mean, what to divide them by, and the mean of their size."""
    wide = tensor.astype(np.float64)
    over = tuple(sorted(set(axes)))
    centred = wide - wide.mean(over, keepdims=True)
    size = np.abs(wide).mean(over, keepdims=True)
    if not divide:
        return centred, 1.0, size
    variance = np.square(centred).mean(over, keepdims=True)
    return centred, np.sqrt(variance + np.float64(np.float32(epsilon))), size


def _scaled(values: Array, scale: Array | None, bias: Array | None) -> Array:
    if scale is not None:
        values = values * scale.astype(np.float64)
    return values if bias is None else values + bias.astype(np.float64)
