"""Normalisation by the mean and the variance, or by a norm, of the elements along some axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "MeanVarianceNormalization2Desc",
    "lp_normalization",
    "mean_variance_normalization2",
    "squared_norm",
]


@dataclass(frozen=True, slots=True)
class MeanVarianceNormalization2Desc:
    """The fields of DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC."""

    InputTensor: Array
    ScaleTensor: Array | None
    BiasTensor: Array | None
    OutputTensor: TensorDesc
    Axes: Sequence[int]
    UseMean: bool
    UseVariance: bool
    Epsilon: float
    FusedActivation: Mapping[str, Any] | None


@of_fields(MeanVarianceNormalization2Desc)
def mean_variance_normalization2(desc: MeanVarianceNormalization2Desc) -> Array:
    """InputTensor {D0, D1, ...}, [ScaleTensor {1 or D0, 1 or D1, ...}],
    [BiasTensor {1 or D0, 1 or D1, ...}] -> OutputTensor {D0, D1, ...}; FLOAT32, FLOAT16

    Return `FusedActivation(scale * (x - mean) / sqrt(variance + Epsilon) + bias)`.

    Mean and variance are computed along Axes; the variance is the mean of `(x - mean) ** 2`.
    Without UseMean the mean counts as 0, and without UseVariance there is no division. An absent
    scale is 1, an absent bias is 0, and an absent FusedActivation changes nothing.

    Source: the page of DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC for Axes and broadcasting;
    the formula, UseMean and UseVariance were measured.
    """
    over = tuple(sorted(set(desc.Axes)))

    def normalized(tensor: Array, scale: Array | None, bias: Array | None) -> Array:
        values = tensor.astype(np.float64)
        if desc.UseMean:
            values -= values.mean(over, keepdims=True)
        factor: Array | float = 1.0 if scale is None else scale.astype(np.float64)
        if desc.UseVariance:
            variance = np.square(values).mean(over, keepdims=True)
            factor = factor / np.sqrt(variance + single(desc.Epsilon))
        values *= factor
        if bias is not None:
            values += bias.astype(np.float64)
        return fused(values, desc.FusedActivation)

    tensors = desc.InputTensor, desc.ScaleTensor, desc.BiasTensor
    with np.errstate(all="ignore"):
        return in_slices(
            normalized, *tensors, dtype=desc.OutputTensor.DataType.dtype, together=over
        )


def lp_normalization(
    InputTensor: Array, OutputTensor: TensorDesc, Axis: int, Epsilon: float, P: int
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `x / sqrt(norm ** 2 + Epsilon)`.

    The norm of the elements along the axis is `sum(|x|)` for P 1, `sqrt(sum(x ** 2))` for P 2.

    Source: the page of DML_LP_NORMALIZATION_OPERATOR_DESC has no formula; this one was found by
    measurements.
    """

    def normalized(tensor: Array) -> Array:
        values = tensor.astype(np.float64)
        values /= np.sqrt(squared_norm(values, Axis, P) + single(Epsilon))
        return values

    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        return in_slices(normalized, InputTensor, dtype=dtype, together=(Axis,))


def squared_norm(values: Array, axis: int, order: int) -> Array:
    """Return the square of a norm along an axis: the L1 norm for order 1, else the L2 norm."""
    if order == 1:
        values = np.abs(values).sum(axis, keepdims=True)
    square: Array = np.square(values).sum(axis, keepdims=True)
    return square
