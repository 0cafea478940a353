"""Permitted results of quantizing and dequantizing besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import STEP, rounded_interval, sizes_of
from dmlconf.permitted.quantization.quotients import (
    exact_quotient,
    is_power_of_two,
    quantized_candidates,
)
from dmlconf.permitted.subnormals import with_and_without_subnormals
from dmlconf.precision.allowance import Interval
from dmlconf.precision.consequences import Consequence
from dmlconf.reference.quantization.linear import (
    bits_of,
    by_element,
    less_zero_point,
    middle_of,
    range_with_zero,
)
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "dequantize_interval",
    "dynamic_quantize_linear_candidates",
    "dynamic_quantize_linear_consequences",
    "element_wise_dequantize_linear_interval",
    "element_wise_quantize_linear_candidates",
    "quantize_candidates",
]

_SINGLE: Final = np.finfo(np.float32)

_DEFINED: Final = np.zeros(1, np.bool_)
"""For `quantized_candidates`: no element is undefined."""


def element_wise_quantize_linear_candidates(
    InputTensor: Array,
    ScaleTensor: Array,
    ZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Sequence[Interval]:
    """Return the candidates of QUANTIZE_LINEAR.

    A kernel computes `x / scale` or `x * (1 / scale)` in FLOAT32, and rounds the result to an
    integer. With a scale of 0, any result is right.

    Source: the page; Direct3D 11.3 functional specification: a reciprocal has an error of 1 ULP.
    """
    quotient = exact_quotient(InputTensor, ScaleTensor)
    zero_points = ZeroPointTensor, ZeroPointTensor
    undefined = ScaleTensor == 0
    return quantized_candidates(
        quotient, zero_points, OutputTensor.DataType, undefined, ScaleTensor
    )


def element_wise_dequantize_linear_interval(
    InputTensor: Array,
    ScaleTensor: Array,
    ZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
) -> Interval:
    """Return the interval of DEQUANTIZE_LINEAR: the products, rounded toward zero or to nearest.

    FLOAT32 may first round 32-bit integers, zero points and their differences.

    Source: measured; Direct3D 11.3 functional specification.
    """
    difference = less_zero_point(InputTensor, ZeroPointTensor)
    error: Array | float = 0.0
    if InputTensor.dtype.itemsize == 4:
        zero_point = 0.0 if ZeroPointTensor is None else sizes_of(ZeroPointTensor)
        error = (np.abs(difference) + sizes_of(InputTensor) + zero_point) * STEP
    return _product_interval(difference, error, ScaleTensor, OutputTensor)


def quantize_candidates(
    InputTensor: Array,
    QuantizationType: str,
    QuantizationTensors: Sequence[Array],
    OutputTensor: TensorDesc,
) -> Sequence[Interval]:
    """Return the candidates of QUANTIZE, as for ELEMENT_WISE_QUANTIZE_LINEAR."""
    data_type = OutputTensor.DataType
    scale, zero_point = by_element(
        QuantizationTensors, InputTensor.shape, middle_of(data_type.bits, data_type.is_signed)
    )
    quotient = exact_quotient(InputTensor, scale)
    zero_points = zero_point, zero_point
    return quantized_candidates(quotient, zero_points, data_type, scale == 0, scale)


def dequantize_interval(
    InputTensor: Array,
    QuantizationType: str,
    QuantizationTensors: Sequence[Array],
    OutputTensor: TensorDesc,
) -> Interval:
    """Return the interval of DEQUANTIZE, as for ELEMENT_WISE_DEQUANTIZE_LINEAR."""
    middle = middle_of(bits_of(InputTensor), InputTensor.dtype.kind == "i")
    scale, zero_point = by_element(QuantizationTensors, InputTensor.shape, middle)
    difference = less_zero_point(InputTensor, zero_point)
    return _product_interval(difference, 0.0, scale, OutputTensor)


def dynamic_quantize_linear_candidates(
    InputTensor: Array,
    OutputTensor: TensorDesc,
    OutputScaleTensor: TensorDesc,
    OutputZeroPointTensor: TensorDesc,
) -> tuple[Sequence[Interval], ...]:
    """Return the candidates of the output, the scale and the zero point.

    FLOAT32 rounds scale and quotients toward zero or to nearest. If `is_power_of_two(scale)`,
    quotients are exact. A subnormal scale has fewer digits, and may be flushed to 0: see
    `_without_scale`. Any zero point and output are right if the scale may be 0, if the range of the
    input overflows FLOAT32, or if the scale and some, but not all, nonzero elements are subnormal.

    Source: the page; Direct3D 11 floating-point rules. Measured: DirectML 1.9.0 and 1.15.4 multiply
    by the reciprocal of the scale, which is infinite for scales of at most 2^-128.
    """
    data_type = OutputTensor.DataType
    least, greatest = range_with_zero(InputTensor)
    with np.errstate(all="ignore"):
        scale = (greatest - least).reshape(1) / 255
        subnormal = scale < _SINGLE.smallest_normal
        rounded = np.where(is_power_of_two(scale), 0.0, STEP)
        rounded += np.where(subnormal, _SINGLE.smallest_subnormal / scale, 0.0)
        scales = [rounded_interval(scale, np.abs(scale) * 2 * rounded, np.dtype(np.float32))]
        undefined = scales[0][0] <= 0
        if greatest - least > _SINGLE.max:
            infinity = np.full(1, np.inf, np.float32)
            scales.append((infinity, infinity))
            undefined |= True
        small = (InputTensor != 0) & (np.abs(InputTensor) < _SINGLE.smallest_normal)
        only_small = bool((small | (InputTensor == 0)).all())
        if subnormal.any() and small.any() and not only_small:
            undefined |= True  # Any of the numbers, and also their range, may be flushed to 0.
        start = data_type.minimum - least / scale
        error = np.abs(least / scale) * 4 * rounded
        zero_points = quantized_candidates((start, error), (None, None), data_type, undefined)
        exact, _ = exact_quotient(InputTensor, scale)
        quotient = exact, np.abs(exact) * 4 * rounded
    ends = zero_points[0]
    outputs = quantized_candidates(quotient, ends, data_type, undefined)
    if subnormal.any() and not undefined.any():
        for values in (InputTensor, np.zeros_like(InputTensor))[: 1 + only_small]:
            further, further_zero_points = _without_scale(values, data_type)
            outputs += further
            zero_points += further_zero_points
    return outputs, scales, zero_points


def dynamic_quantize_linear_consequences(
    InputTensor: Array,
    OutputTensor: Array | None,
    OutputScaleTensor: Array | None,
    OutputZeroPointTensor: Array | None,
) -> Sequence[Consequence]:
    """Return the zero point that follows from a scale, and the elements that follow from both.

    A quotient is a division by the scale, or a product with its reciprocal, as for QUANTIZE_LINEAR.
    A scale that is subnormal, or that was flushed to 0, may count as itself or as 0: see
    `_without_scale`. Subnormal inputs may count as 0. A NaN zero point may also become the greatest
    number, which is right for `max(min(NaN, greatest), least)`.

    Source: the page; Direct3D 11 floating-point rules. Measured: the outputs of DirectML 1.8.0,
    1.9.1, 1.13.1 and 1.15.4 follow so, with quotients next to halves and scales of all kinds.
    """
    if OutputScaleTensor is None or OutputZeroPointTensor is None:
        return ()
    data_type = DataType(OutputZeroPointTensor.dtype.name.upper())
    scale, zero_point = OutputScaleTensor.reshape(1), OutputZeroPointTensor.reshape(1)
    zero_points: list[Sequence[Interval]] = []
    outputs: list[Sequence[Interval]] = []
    for values in with_and_without_subnormals(InputTensor):
        for divisor, lost in _divisors(values, scale):
            least, error = _quotient(range_with_zero(values)[0].reshape(1), divisor, lost)
            # The reciprocal and the product with it are both rounded before the difference.
            start = data_type.minimum - least, 2 * error
            candidates = quantized_candidates(start, (None, None), data_type, _DEFINED)
            if np.isnan(start[0]).any():
                greatest = np.full(1, data_type.maximum, data_type.dtype)
                candidates.append((greatest, greatest))
            zero_points.append(candidates)
            quotient = _quotient(values, divisor, lost)
            ends = zero_point, zero_point
            outputs.append(quantized_candidates(quotient, ends, data_type, _DEFINED))
    scale_name, zero_point_name = "OutputScaleTensor", "OutputZeroPointTensor"
    return (
        Consequence(zero_point_name, (scale_name,), zero_points),
        Consequence("OutputTensor", (scale_name, zero_point_name), outputs),
    )


def _divisors(values: Array, scale: Array) -> Iterator[tuple[Array, float]]:
    """Yield the scales that a kernel may divide by if it returns `scale`, FLOAT64.

    Each comes with the error that it has as a share of itself.
    """
    wide = scale.astype(np.float64)
    yield wide, 0.0
    if 0 < scale[0] <= _SINGLE.smallest_normal:
        yield np.zeros(1), 0.0
    least, greatest = range_with_zero(values)
    if scale[0] == 0 and greatest > least:
        exact = (greatest - least).reshape(1) / 255
        yield exact, 2 * STEP + _SINGLE.smallest_subnormal / exact[0]


def _quotient(values: Array, divisor: Array, lost: float) -> tuple[Array, Array]:
    """Return values / divisor, and the errors of the divisor and of its reciprocal.

    Args:
        lost: the error of the divisor as a share of itself.
    """
    if divisor[0] == 0:
        with np.errstate(invalid="ignore"):
            infinite = values.astype(np.float64) * np.inf
        return infinite, np.zeros_like(infinite)
    exact, error = exact_quotient(values, divisor)
    return exact, error + np.abs(exact) * 2 * lost


def _without_scale(values: Array, data_type: DataType) -> tuple[list[Interval], list[Interval]]:
    """Return outputs and zero points if the scale is flushed to 0, or its reciprocal is infinite.

    Positive numbers then become the greatest integer, and negative numbers the least. The quotient
    of 0 is NaN: see `quantized_candidates`.
    """
    exactly = np.zeros(1)
    with np.errstate(all="ignore"):
        start = (data_type.minimum - range_with_zero(values)[0] * np.inf).reshape(1)
        quotient = values.astype(np.float64) * np.inf
    zero_points = quantized_candidates((start, exactly), (None, None), data_type, _DEFINED)
    outputs = [
        each
        for ends in zero_points
        for each in quantized_candidates(
            (quotient, np.zeros_like(quotient)), ends, data_type, _DEFINED
        )
    ]
    return outputs, zero_points


def _product_interval(
    difference: Array, error: Array | float, scale: Array, output: TensorDesc
) -> Interval:
    with np.errstate(all="ignore"):
        wide = scale.astype(np.float64)
        return rounded_interval(difference * wide, error * np.abs(wide), output.DataType.dtype)
