"""Convolutions and means of the quantized numbers that a window sees.

Padding counts as the zero point. EndPadding only affects the size of the output: all that
a position reaches beyond the input is padding.

Source: the operators' pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, overload

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.rounding import STEP
from dmlconf.reference.quantization.arithmetic import (
    centred,
    quantized_sum,
    quantized_sum_candidates,
)
from dmlconf.reference.quantization.quotients import (
    is_power_of_two,
    quantized,
    quantized_candidates,
)
from dmlconf.reference.windows.convolution import FilterGeometry, forward
from dmlconf.reference.windows.sliding import elements, sums, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "QuantizedLinearAveragePoolingDesc",
    "QuantizedLinearConvolutionDesc",
    "convolution_integer",
    "quantized_linear_average_pooling",
    "quantized_linear_average_pooling_candidates",
    "quantized_linear_convolution",
    "quantized_linear_convolution_candidates",
]


_EXACT: Final = 2.0**24
"""The magnitude up to which FLOAT32 has every integer."""


def convolution_integer(
    InputTensor: Array,
    InputZeroPointTensor: Array | None,
    FilterTensor: Array,
    FilterZeroPointTensor: Array | None,
    OutputTensor: TensorDesc,
    Strides: Sequence[int],
    Dilations: Sequence[int],
    StartPadding: Sequence[int],
    EndPadding: Sequence[int],
    GroupCount: int,
) -> Array:
    """InputTensor {N, C, H, W}, [InputZeroPointTensor {1, ...}], FilterTensor {O, C / G, FH, FW},
    [FilterZeroPointTensor {1, 1 or O, 1, ...}] -> OutputTensor {N, O, OH, OW}; INT32; InputTensor,
    InputZeroPointTensor, FilterTensor, FilterZeroPointTensor: INT8, UINT8

    Return the convolution of integers from which zero points are subtracted; sums wrap around.

        convolution(Input - InputZeroPoint, Filter - FilterZeroPoint)

    There is a zero point for all of the filter or for each output channel.

    Source: the page of DML_CONVOLUTION_INTEGER_OPERATOR_DESC; that padding counts as the zero point
    and that sums wrap was measured.
    """
    attributes = Strides, Dilations, StartPadding, GroupCount
    filter_ = _centred_filter(FilterTensor, FilterZeroPointTensor)
    values = centred(_square(InputTensor), _one(InputZeroPointTensor))
    sums = _convolved(values, filter_, OutputTensor, *attributes)
    return sums.astype(np.int64).astype(np.int32)


@dataclass(frozen=True, slots=True)
class QuantizedLinearConvolutionDesc:
    """The fields of DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC."""

    InputTensor: Array
    InputScaleTensor: Array
    InputZeroPointTensor: Array | None
    FilterTensor: Array
    FilterScaleTensor: Array
    FilterZeroPointTensor: Array | None
    BiasTensor: Array | None
    OutputScaleTensor: Array
    OutputZeroPointTensor: Array | None
    OutputTensor: TensorDesc
    Strides: Sequence[int]
    Dilations: Sequence[int]
    StartPadding: Sequence[int]
    EndPadding: Sequence[int]
    GroupCount: int

    def scales(self) -> tuple[Array, Array, Array]:
        """Return the scales of the input, the filter and the output, broadcast to sums."""
        of_filter = _by_channel(self.FilterScaleTensor)
        return _one(self.InputScaleTensor), of_filter, _one(self.OutputScaleTensor)


@of_fields(QuantizedLinearConvolutionDesc)
def quantized_linear_convolution(desc: QuantizedLinearConvolutionDesc) -> Array:
    """InputTensor {N, C, H, W}, InputScaleTensor {1, ...}, [InputZeroPointTensor {1, ...}],
    FilterTensor {O, C / G, FH, FW}, FilterScaleTensor {1, 1 or O, 1, ...},
    [FilterZeroPointTensor {1, 1 or O, 1, ...}], [BiasTensor {1, O, 1, ...}],
    OutputScaleTensor {1, ...}, [OutputZeroPointTensor {1, ...}] -> OutputTensor {N, O, OH, OW};
    INT8, UINT8; InputScaleTensor, FilterScaleTensor, OutputScaleTensor: FLOAT32; BiasTensor: INT32

    Return the quantized convolution of dequantized tensors, plus a bias.

        input = (Input - InputZeroPoint) InputScale
        filter = (Filter - FilterZeroPoint) FilterScale
        sum = convolution(input, filter) + Bias InputScale FilterScale
        clamp(round(sum / OutputScale) + OutputZeroPoint)

    There is a scale and a zero point for all of the filter or for each output channel.

    Source: the page of DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC; padding and the scale of the
    bias were measured.
    """
    attributes = desc.Strides, desc.Dilations, desc.StartPadding, desc.GroupCount
    filter_ = _centred_filter(desc.FilterTensor, desc.FilterZeroPointTensor)
    values = centred(_square(desc.InputTensor), _one(desc.InputZeroPointTensor))
    sums = _convolved(values, filter_, desc.OutputTensor, *attributes)
    if desc.BiasTensor is not None:
        sums += _by_channel(desc.BiasTensor)
    return quantized_sum(sums, desc.scales(), _one(desc.OutputZeroPointTensor), desc.OutputTensor)


@of_fields(QuantizedLinearConvolutionDesc)
def quantized_linear_convolution_candidates(
    desc: QuantizedLinearConvolutionDesc,
) -> Sequence[Interval]:
    """Return what the quotient becomes if each of the operations may round either way."""
    attributes = desc.Strides, desc.Dilations, desc.StartPadding, desc.GroupCount
    filter_ = _centred_filter(desc.FilterTensor, desc.FilterZeroPointTensor)
    values = centred(_square(desc.InputTensor), _one(desc.InputZeroPointTensor))
    sums = _convolved(values, filter_, desc.OutputTensor, *attributes)
    error_scale = _convolved(np.abs(values), np.abs(filter_), desc.OutputTensor, *attributes)
    if desc.BiasTensor is not None:
        bias = _by_channel(desc.BiasTensor.astype(np.float64))
        sums += bias
        error_scale += np.abs(bias)
    products = prod(desc.FilterTensor.shape[1:]) + 1
    zero_point = _one(desc.OutputZeroPointTensor)
    intervals = quantized_sum_candidates(
        sums, error_scale, products, desc.scales(), zero_point, desc.OutputTensor
    )
    # To DirectML tensors of 3 dimensions have a last one of size 1.
    sizes = desc.OutputTensor.Sizes
    return [(lowest.reshape(sizes), highest.reshape(sizes)) for lowest, highest in intervals]


@dataclass(frozen=True, slots=True)
class QuantizedLinearAveragePoolingDesc:
    """The fields of DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC."""

    InputTensor: Array
    InputScaleTensor: Array
    InputZeroPointTensor: Array | None
    OutputScaleTensor: Array
    OutputZeroPointTensor: Array | None
    OutputTensor: TensorDesc
    Strides: Sequence[int]
    WindowSize: Sequence[int]
    StartPadding: Sequence[int]
    EndPadding: Sequence[int]
    Dilations: Sequence[int]
    IncludePadding: bool


@of_fields(QuantizedLinearAveragePoolingDesc)
def quantized_linear_average_pooling(desc: QuantizedLinearAveragePoolingDesc) -> Array:
    """InputTensor {N, C, D0, ...}, InputScaleTensor {1, 1 or C, 1, ...},
    [InputZeroPointTensor {1, 1 or C, 1, ...}], OutputScaleTensor {1, 1 or C, 1, ...},
    [OutputZeroPointTensor {1, 1 or C, 1, ...}] -> OutputTensor {N, C, E0, ...}; INT8, UINT8;
    InputScaleTensor, OutputScaleTensor: FLOAT32

    Return the quantized mean of the dequantized numbers that the window sees.

        mean = sum of (Input - InputZeroPoint) InputScale / how many are counted
        clamp(round(mean / OutputScale) + OutputZeroPoint)

    There are scales and zero points for all of a tensor or for each channel. IncludePadding counts
    padding as zero points. Without it, nothing but padding gives the least number, as NaN does;
    DirectML gives the greatest one where the output has no zero point.

    Source: the page of DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC; NaN was measured.
    """
    spatial = desc.Strides, desc.WindowSize, desc.StartPadding, desc.Dilations
    over = windows(desc.InputTensor.shape, desc.OutputTensor.Sizes, *spatial)
    rank = desc.InputTensor.ndim
    with np.errstate(all="ignore"):
        means = sums(centred(desc.InputTensor, _by_channel(desc.InputZeroPointTensor, rank)), over)
        means *= _by_channel(desc.InputScaleTensor, rank)
        means /= prod(desc.WindowSize) if desc.IncludePadding else elements(over)
        means /= _by_channel(desc.OutputScaleTensor, rank)
        quotient = means.astype(np.float32)
    zero_point = _by_channel(desc.OutputZeroPointTensor, rank)
    return quantized(quotient, zero_point, desc.OutputTensor.DataType)


@of_fields(QuantizedLinearAveragePoolingDesc)
def quantized_linear_average_pooling_candidates(
    desc: QuantizedLinearAveragePoolingDesc,
) -> Sequence[Interval]:
    """Return what the quotient becomes if each of the operations may round either way.

    Where all scales and the count are powers of two, and FLOAT32 holds the sum, nothing is rounded.
    Where a scale is 0 or not finite, terms exceed the largest FLOAT32 number, or the mean is one of
    nothing, any result is right.
    """
    spatial = desc.Strides, desc.WindowSize, desc.StartPadding, desc.Dilations
    over = windows(desc.InputTensor.shape, desc.OutputTensor.Sizes, *spatial)
    rank = desc.InputTensor.ndim
    places = prod(desc.WindowSize)
    zero_point = _by_channel(desc.OutputZeroPointTensor, rank)
    with np.errstate(all="ignore"):
        values = centred(desc.InputTensor, _by_channel(desc.InputZeroPointTensor, rank))
        scale, last = (
            _by_channel(tensor, rank).astype(np.float64)
            for tensor in (desc.InputScaleTensor, desc.OutputScaleTensor)
        )
        count = places if desc.IncludePadding else elements(over)
        quotient = sums(values, over) * scale / count / last
        error_scale = sums(np.abs(values), over)
        terms = error_scale * np.abs(scale)
        exact = is_power_of_two(scale) & is_power_of_two(last) & is_power_of_two(np.asarray(count))
        exact = exact & (error_scale <= _EXACT)
        error = terms / count / np.abs(last) * ((places + 5) * STEP)
        error = np.where(exact, 0.0, error)
        undefined = ~(terms <= np.finfo(np.float32).max) | (scale == 0) | (last == 0)
        undefined |= ~np.isfinite(last) | (count == 0)
    zero_points = zero_point, zero_point
    return quantized_candidates(
        (quotient, error), zero_points, desc.OutputTensor.DataType, undefined
    )


def _convolved(
    values: Array,
    filter_: Array,
    output: TensorDesc,
    strides: Sequence[int],
    dilations: Sequence[int],
    start: Sequence[int],
    groups: int,
) -> Array:
    """Return the convolution, FLOAT64, of 4 dimensions like its arguments."""
    window = FilterGeometry.of(values.ndim - 2, strides, dilations, start, groups)
    sizes = (*output.Sizes, *(1,) * (values.ndim - output.DimensionCount))
    return forward(values, filter_, sizes, window)


def _centred_filter(filter_: Array, zero_point: Array | None) -> Array:
    """Return a filter, whose first dimension is that of output channels, without zero points."""
    wide = _square(filter_)
    return centred(wide, None if zero_point is None else zero_point.reshape(-1, 1, 1, 1))


def _square(tensor: Array) -> Array:
    """Return a tensor of 4 dimensions: those that it lacks at its end have a size of 1."""
    return tensor.reshape(*tensor.shape, *(1,) * (4 - tensor.ndim))


@overload
def _by_channel(tensor: Array, rank: int = 4) -> Array: ...
@overload
def _by_channel(tensor: Array | None, rank: int = 4) -> Array | None: ...
def _by_channel(tensor: Array | None, rank: int = 4) -> Array | None:
    """Return one element, or one for each channel, so that it is broadcast to its tensor."""
    return None if tensor is None else tensor.reshape(1, -1, *(1,) * (rank - 2))


@overload
def _one(tensor: Array) -> Array: ...
@overload
def _one(tensor: Array | None) -> Array | None: ...
def _one(tensor: Array | None) -> Array | None:
    """Return the one element of a tensor of any number of dimensions."""
    return None if tensor is None else tensor.reshape(1)
