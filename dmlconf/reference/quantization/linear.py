"""Operators that quantize or dequantize numbers, and the scale and zero point of each element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.quantization.quotients import quantized, single_quotient
from dmlconf.tensors.datatypes import Array

__all__ = [
    "bits_of",
    "by_element",
    "dequantize",
    "dynamic_quantize_linear",
    "element_wise_dequantize_linear",
    "element_wise_quantize_linear",
    "less_zero_point",
    "middle_of",
    "quantize",
    "range_with_zero",
]


def element_wise_quantize_linear(
    InputTensor: Array,
    ScaleTensor: Array,
    ZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Array:
    """InputTensor {D0, ...}, ScaleTensor {D0, ...}, [ZeroPointTensor {D0, ...}] ->
    OutputTensor {D0, ...}; INT8, UINT8; InputTensor: FLOAT32, FLOAT16, INT32; ScaleTensor: FLOAT32,
    FLOAT16

    Return `clamp(round(x / scale) + zero_point)`.

    Inputs, scales and quotients are rounded to FLOAT32, and `round` rounds halves to even. An
    absent zero point is 0. A NaN quotient becomes 0, whatever the zero point.

    Source: the page of DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC; halves, NaN, and that
    the zero point is added after rounding were measured.
    """
    data_type = OutputTensor.DataType

    def computed(values: Array, scale: Array, zero_point: Array | None = None) -> Array:
        return quantized(single_quotient(values, scale), zero_point, data_type, nan=0)

    optional = [] if ZeroPointTensor is None else [ZeroPointTensor]
    return in_blocks(computed, InputTensor, ScaleTensor, *optional, dtype=data_type.dtype)


def element_wise_dequantize_linear(
    InputTensor: Array,
    ScaleTensor: Array,
    ZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Array:
    """InputTensor {D0, ...}, ScaleTensor {D0, ...}, [ZeroPointTensor {D0, ...}] ->
    OutputTensor {D0, ...}; FLOAT32, FLOAT16; InputTensor, ZeroPointTensor: INT32 to INT8, UINT32 to
    UINT8

    Return `(x - zero_point) * scale`, where an absent zero point is 0.

    Source: the page of DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC.
    """

    def computed(values: Array, scale: Array, zero_point: Array | None = None) -> Array:
        return _product(less_zero_point(values, zero_point), scale, OutputTensor)

    optional = [] if ZeroPointTensor is None else [ZeroPointTensor]
    tensors = InputTensor, ScaleTensor, *optional
    return in_blocks(computed, *tensors, dtype=OutputTensor.DataType.dtype)


def quantize(
    InputTensor: Array,
    QuantizationType: str,
    QuantizationTensors: Sequence[Array],
    OutputTensor: TensorDesc,
) -> Array:
    """InputTensor {D0, D1, ...}, QuantizationTensors {D0 / B0, D1 / B1, ...} ->
    OutputTensor {D0, D1, ...}; INT8, INT4, UINT8, UINT4; InputTensor: FLOAT32, FLOAT16;
    QuantizationTensors: FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4

    Return `clamp(round(x / scale) + zero_point)`, with a scale for each block of the input.

    The quantization tensors are the scales and, with SCALE_ZERO_POINT, the zero points. Each of
    their elements belongs to a block of the input: scales of sizes {2, 1} divide an input of sizes
    {4, 6} into two blocks of sizes {2, 6}. With SCALE the zero point is 128 for UINT8, 8 for UINT4,
    and 0 for signed types. Quotients are FLOAT32 numbers, halves are rounded to even, and a NaN
    quotient becomes the least number of the output's type.

    Source: measured, since the page of DML_QUANTIZE_OPERATOR_DESC does not describe the operator.
    """
    data_type = OutputTensor.DataType
    scale, zero_point = by_element(
        QuantizationTensors, InputTensor.shape, middle_of(data_type.bits, data_type.is_signed)
    )
    return quantized(single_quotient(InputTensor, scale), zero_point, data_type)


def dequantize(
    InputTensor: Array,
    QuantizationType: str,
    QuantizationTensors: Sequence[Array],
    OutputTensor: TensorDesc,
) -> Array:
    """InputTensor {D0, D1, ...}, QuantizationTensors {D0 / B0, D1 / B1, ...} ->
    OutputTensor {D0, D1, ...}; FLOAT32, FLOAT16; InputTensor: INT8, INT4, UINT8, UINT4;
    QuantizationTensors: FLOAT32, FLOAT16, INT8, INT4, UINT8, UINT4

    Return `(x - zero_point) * scale`, with scales and zero points of blocks as in `quantize`.

    Source: measured, since the page of DML_DEQUANTIZE_OPERATOR_DESC does not describe the operator.
    """
    middle = middle_of(bits_of(InputTensor), InputTensor.dtype.kind == "i")
    scale, zero_point = by_element(QuantizationTensors, InputTensor.shape, middle)
    difference = less_zero_point(InputTensor, zero_point)
    return _product(difference, scale, OutputTensor)


def dynamic_quantize_linear(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    OutputScaleTensor: TensorDesc,
    OutputZeroPointTensor: TensorDesc,
) -> tuple[Array, Array, Array]:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}, OutputScaleTensor {1, ...},
    OutputZeroPointTensor {1, ...}; INT8, UINT8; InputTensor: FLOAT32, FLOAT16; OutputScaleTensor:
    FLOAT32

    Return the quantized input, and the scale and the zero point that it was quantized with.

    `lowest` is the least number of the output's type; `least` and `greatest` are the extremes of 0
    and all elements but NaN:

        scale = (greatest - least) / 255
        zero_point = clamp(round(lowest - least / scale))
        output = clamp(round(x / scale) + zero_point)

    All arithmetic is FLOAT32, and halves are rounded to even. A NaN zero point or quotient becomes
    `lowest`.

    Source: the page of DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC. Measured are NaN, that the range
    includes 0, and that the zero point is rounded and clamped.
    """
    data_type = OutputTensor.DataType
    lowest = np.float32(data_type.minimum)
    least, greatest = (np.float32(end) for end in range_with_zero(InputTensor))
    with np.errstate(all="ignore"):
        scale = ((greatest - least) / np.float32(255)).reshape(1)
        start = lowest - least / scale
    zero_point = quantized(start, None, data_type)
    output = quantized(single_quotient(InputTensor, scale), zero_point, data_type)
    return output, scale, zero_point


def less_zero_point(values: Array, zero_point: Array | None) -> Array:
    """Return `values - zero_point`, exact: FLOAT32 for integers of 4 or 8 bits, else FLOAT64."""
    wide = values.astype(np.float32 if values.dtype.itemsize == 1 else np.float64)
    return wide if zero_point is None else wide - zero_point.astype(wide.dtype)


def _product(difference: Array, scale: Array, output: TensorDesc) -> Array:
    with np.errstate(all="ignore"):
        return (difference * scale).astype(output.DataType.dtype, copy=False)


def range_with_zero(values: Array) -> tuple[Array, Array]:
    """Return the least and the greatest of 0 and all values but NaN, FLOAT64."""
    with np.errstate(invalid="ignore"):
        ends = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        least, greatest = (np.float64(end) for end in ends)
        return np.fmin(least, 0.0), np.fmax(greatest, 0.0)


def by_element(tensors: Sequence[Array], sizes: Sequence[int], middle: int) -> tuple[Array, Array]:
    """Return the scale and the zero point of each element, in shapes that broadcast to `sizes`.

    Args:
        tensors: QuantizationTensors: scales, and perhaps zero points.
        middle: the zero point of all elements if there are no others.
    """
    scale, *zero_points = (_repeated(tensor, sizes) for tensor in tensors)
    return scale, zero_points[0] if zero_points else np.full(1, middle, np.uint8)


def _repeated(tensor: Array, sizes: Sequence[int]) -> Array:
    """Return a tensor with each element repeated over its block, except along axes of size 1."""
    repeated = tensor
    for axis, (blocks, size) in enumerate(zip(tensor.shape, sizes, strict=True)):
        if 1 < blocks < size:
            repeated = np.repeat(repeated, size // blocks, axis)
    return repeated


def middle_of(bits: int, signed: bool) -> int:
    """Return the middle of an integer type's range, rounded up: 128 for UINT8, 0 for INT8."""
    return 0 if signed else 1 << (bits - 1)


def bits_of(values: Array) -> int:
    """Return how many bits an element has; the dtype of a 4-bit type has the metadata `bits`."""
    metadata: Mapping[str, int] | None = values.dtype.metadata
    return 8 * values.dtype.itemsize if metadata is None else metadata["bits"]
