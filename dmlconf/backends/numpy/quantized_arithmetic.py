"""Arithmetic on quantized numbers: element-wise addition and products of matrices."""

from __future__ import annotations

import numpy as np

from dmlconf.backends.numpy.quantization import quantized, quantized_interval
from dmlconf.backends.numpy.rounding import STEP
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_quantized_linear_add",
    "element_wise_quantized_linear_add_interval",
]


def element_wise_quantized_linear_add(
    ATensor: Array,
    AScaleTensor: Array,
    AZeroPointTensor: Array | None,
    BTensor: Array,
    BScaleTensor: Array,
    BZeroPointTensor: Array | None,
    OutputScaleTensor: Array,
    OutputZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Array:
    """Return the quantized sum of two dequantized tensors, computed in FLOAT32.

    Absent zero points are 0; a NaN becomes the least number.

    Source: the page of DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC; NaN was measured.
    """
    single = np.dtype(np.float32)
    with np.errstate(all="ignore"):
        a = dequantized(ATensor, AScaleTensor, AZeroPointTensor, single)
        b = dequantized(BTensor, BScaleTensor, BZeroPointTensor, single)
        quotient = (a + b) / OutputScaleTensor
    return quantized(quotient, OutputZeroPointTensor, OutputTensor.DataType)


def element_wise_quantized_linear_add_interval(
    ATensor: Array,
    AScaleTensor: Array,
    AZeroPointTensor: Array | None,
    BTensor: Array,
    BScaleTensor: Array,
    BZeroPointTensor: Array | None,
    OutputScaleTensor: Array,
    OutputZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> tuple[Array, Array]:
    """Return what the quotient becomes if each of the operations may round either way.

    Where a term exceeds the largest FLOAT32 number, or a scale is 0, any result is right.

    Source: Direct3D 11.3 functional specification: products and sums may be off by one step, and
    so may the reciprocal of the scale.
    """
    double = np.dtype(np.float64)
    with np.errstate(all="ignore"):
        a = dequantized(ATensor, AScaleTensor, AZeroPointTensor, double)
        b = dequantized(BTensor, BScaleTensor, BZeroPointTensor, double)
        magnitude = np.abs(a) + np.abs(b)
        quotient = (a + b) / OutputScaleTensor
        error = magnitude / np.abs(OutputScaleTensor) * (4 * STEP)
        undefined = np.isfinite(magnitude) & (magnitude > np.finfo(np.float32).max)
    for scale in (AScaleTensor, BScaleTensor, OutputScaleTensor):
        undefined |= scale == 0
    zero_points = OutputZeroPointTensor, OutputZeroPointTensor
    return quantized_interval((quotient, error), zero_points, OutputTensor.DataType, undefined)


def dequantized(
    values: Array, scale: Array, zero_point: Array | None, dtype: np.dtype[np.floating]
) -> Array:
    """Return `(values - zero_point) * scale`, computed in a floating-point type."""
    wide = values.astype(dtype)
    if zero_point is not None:
        wide -= zero_point
    wide *= scale
    return wide
