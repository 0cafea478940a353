"""Operators between numbers and their quantized form."""

from __future__ import annotations

import numpy as np

from dmlconf.backends.numpy.rounding import STEP, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["element_wise_quantize_linear", "element_wise_quantize_linear_interval"]


def element_wise_quantize_linear(
    InputTensor: Array,
    ScaleTensor: Array,
    ZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Array:
    """Return `clamp(round(x / scale) + zero_point)`.

    The quotient is a FLOAT32 number, also of integers; halves are rounded to even. The zero point
    is added after rounding, and is 0 where the tensor is absent. A NaN becomes 0, whatever the
    zero point.

    Source: the page of DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC; the order, halves and NaN
    were measured.
    """
    with np.errstate(all="ignore"):
        quotient = InputTensor.astype(np.float32) / ScaleTensor.astype(np.float32)
    return _quantized(quotient, ZeroPointTensor, OutputTensor)


def element_wise_quantize_linear_interval(
    InputTensor: Array,
    ScaleTensor: Array,
    ZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> tuple[Array, Array]:
    """Return what the quotient `x * (1 / scale)` or `x / scale` becomes, rounded either way.

    With a scale of 0 the page leaves the result undefined. A NaN may count as less than every
    number, because it may get lost in the clamp.

    Source: the page; Direct3D 11.3 functional specification: a reciprocal has an error of 1 ULP.
    """
    limits = np.iinfo(OutputTensor.DataType.dtype)
    with np.errstate(all="ignore"):
        exact = InputTensor.astype(np.float32).astype(np.float64) / ScaleTensor.astype(np.float64)
        ends = rounded_interval(exact, np.abs(exact) * STEP, np.dtype(np.float32))
    lowest, highest = (_quantized(end, ZeroPointTensor, OutputTensor) for end in ends)
    undefined = ScaleTensor == 0
    lowest[np.isnan(exact) | undefined] = limits.min
    highest[undefined] = limits.max
    return lowest, highest


def _quantized(quotient: Array, zero_point: Array | None, output: TensorDesc) -> Array:
    dtype = output.DataType.dtype
    limits = np.iinfo(dtype)
    rounded = np.rint(quotient)
    if zero_point is not None:
        rounded += zero_point
    np.clip(rounded, limits.min, limits.max, out=rounded)
    rounded[np.isnan(rounded)] = 0
    return rounded.astype(dtype)
