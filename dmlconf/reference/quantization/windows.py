"""Convolution and average pooling of quantized numbers.

All elements that a window reaches beyond the input are padding, which counts as the zero point.
EndPadding has no other effect than on the sizes of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import overload

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.quantization.arithmetic import centred, quantized_sum
from dmlconf.reference.quantization.exact_sums import exact_convolution
from dmlconf.reference.quantization.quotients import quantized
from dmlconf.reference.windows.convolution import FilterGeometry
from dmlconf.reference.windows.sliding import elements, sums, windows
from dmlconf.tensors.datatypes import Array

__all__ = [
    "QuantizedLinearAveragePoolingDesc",
    "QuantizedLinearConvolutionDesc",
    "by_channel",
    "centred_filter",
    "convolution_integer",
    "convolved",
    "mean_quotient",
    "one_element",
    "quantized_linear_average_pooling",
    "quantized_linear_convolution",
    "with_four_dimensions",
]


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
    """InputTensor {N, C, D0, ...}, [InputZeroPointTensor {1, ...}],
    FilterTensor {O, C / G, F0, ...}, [FilterZeroPointTensor {1, 1 or O, 1, ...}] ->
    OutputTensor {N, O, E0, ...}; INT32; InputTensor, InputZeroPointTensor, FilterTensor,
    FilterZeroPointTensor: INT8, UINT8

    Return `convolution(Input - InputZeroPoint, Filter - FilterZeroPoint)`; sums wrap around at 32
    bits.

    The filter is not mirrored, as in CONVOLUTION with the mode CROSS_CORRELATION. An absent zero
    point is 0.

    Source: the page of DML_CONVOLUTION_INTEGER_OPERATOR_DESC; the orientation of the filter,
    padding and wrapping were measured.
    """
    attributes = Strides, Dilations, StartPadding, GroupCount
    filter_ = centred_filter(FilterTensor, FilterZeroPointTensor)
    values = centred(with_four_dimensions(InputTensor), one_element(InputZeroPointTensor))
    sums = convolved(values, filter_, OutputTensor, *attributes)
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

    def centred(self) -> tuple[Array, Array]:
        """Return the input and the filter minus their zero points, FLOAT64."""
        tensor = with_four_dimensions(self.InputTensor)
        filter_ = centred_filter(self.FilterTensor, self.FilterZeroPointTensor)
        return centred(tensor, one_element(self.InputZeroPointTensor)), filter_

    def convolved(self, values: Array, filter_: Array) -> Array:
        """Return the convolution of an input with a filter, by the attributes of the desc."""
        spatial = self.Strides, self.Dilations, self.StartPadding, self.GroupCount
        return convolved(values, filter_, self.OutputTensor, *spatial)

    def scales(self) -> tuple[Array, Array, Array]:
        """Return the scales of the input, the filter and the output, which broadcast to sums."""
        of_filter = by_channel(self.FilterScaleTensor)
        return one_element(self.InputScaleTensor), of_filter, one_element(self.OutputScaleTensor)


@of_fields(QuantizedLinearConvolutionDesc)
def quantized_linear_convolution(desc: QuantizedLinearConvolutionDesc) -> Array:
    """InputTensor {N, C, D0, ...}, InputScaleTensor {1, ...}, [InputZeroPointTensor {1, ...}],
    FilterTensor {O, C / G, F0, ...}, FilterScaleTensor {1, 1 or O, 1, ...},
    [FilterZeroPointTensor {1, 1 or O, 1, ...}], [BiasTensor {1, O, 1, ...}],
    OutputScaleTensor {1, ...}, [OutputZeroPointTensor {1, ...}] -> OutputTensor {N, O, E0, ...};
    INT8, UINT8; InputScaleTensor, FilterScaleTensor, OutputScaleTensor: FLOAT32; BiasTensor: INT32

    Return the quantized convolution of dequantized tensors, plus a bias.

        sum = convolution(Input - InputZeroPoint, Filter - FilterZeroPoint) + Bias
        clamp(round(sum InputScale FilterScale / OutputScale) + OutputZeroPoint)

    The filter is not mirrored. An absent zero point is 0. Halves are rounded to even, and a NaN
    quotient becomes OutputZeroPoint.

    Source: the page of DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC; padding, the scale of the
    bias, halves and NaN were measured.
    """
    sums = desc.convolved(*desc.centred())
    if desc.BiasTensor is not None:
        sums += by_channel(desc.BiasTensor)
    return quantized_sum(
        sums, desc.scales(), one_element(desc.OutputZeroPointTensor), desc.OutputTensor
    )


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

    Return the quantized mean of the dequantized numbers in each window.

        mean = sum of (Input - InputZeroPoint) InputScale / number of elements
        clamp(round(mean / OutputScale) + OutputZeroPoint)

    An absent zero point is 0, and halves are rounded to even. With IncludePadding the number of
    elements includes padding. Without it, the mean of a window of padding alone is NaN, and any
    result is right. Here the result is the least number of the type; DirectML gives the greatest
    one if the output has no zero point.

    Source: the page of DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC; halves and NaN were
    measured.
    """
    zero_point = by_channel(desc.OutputZeroPointTensor, desc.InputTensor.ndim)
    return quantized(mean_quotient(desc), zero_point, desc.OutputTensor.DataType)


def mean_quotient(desc: QuantizedLinearAveragePoolingDesc) -> Array:
    """Return the mean of each window, divided by the output's scale, FLOAT32."""
    spatial = desc.Strides, desc.WindowSize, desc.StartPadding, desc.Dilations
    over = windows(desc.InputTensor.shape, desc.OutputTensor.Sizes, *spatial)
    rank = desc.InputTensor.ndim
    with np.errstate(all="ignore"):
        means = sums(centred(desc.InputTensor, by_channel(desc.InputZeroPointTensor, rank)), over)
        means *= by_channel(desc.InputScaleTensor, rank)
        means /= prod(desc.WindowSize) if desc.IncludePadding else elements(over)
        means /= by_channel(desc.OutputScaleTensor, rank)
        quotient: Array = means.astype(np.float32)
    return quotient


def convolved(
    values: Array,
    filter_: Array,
    output: TensorDesc,
    strides: Sequence[int],
    dilations: Sequence[int],
    start: Sequence[int],
    groups: int,
) -> Array:
    """Return the convolution of centred bytes in 4 dimensions, FLOAT64.

    For a missing spatial dimension, `strides` and `dilations` are 1, and `start` is 0.
    """
    window = FilterGeometry.of(values.ndim - 2, strides, dilations, start, groups)
    sizes = (*output.Sizes, *(1,) * (values.ndim - output.DimensionCount))
    return exact_convolution(values, filter_, sizes, window)


def centred_filter(filter_: Array, zero_point: Array | None) -> Array:
    """Return a filter minus one zero point, or minus one for each output channel, FLOAT64."""
    wide = with_four_dimensions(filter_)
    return centred(wide, None if zero_point is None else zero_point.reshape(-1, 1, 1, 1))


def with_four_dimensions(tensor: Array) -> Array:
    """Return a tensor with dimensions of size 1 at its end, so that it has 4 dimensions."""
    return tensor.reshape(*tensor.shape, *(1,) * (4 - tensor.ndim))


@overload
def by_channel(tensor: Array, rank: int = 4) -> Array: ...
@overload
def by_channel(tensor: Array | None, rank: int = 4) -> Array | None: ...
def by_channel(tensor: Array | None, rank: int = 4) -> Array | None:
    """Return a tensor of 1 or C elements with sizes {1, 1 or C, 1, ...}; None for None."""
    return None if tensor is None else tensor.reshape(1, -1, *(1,) * (rank - 2))


@overload
def one_element(tensor: Array) -> Array: ...
@overload
def one_element(tensor: Array | None) -> Array | None: ...
def one_element(tensor: Array | None) -> Array | None:
    """Return a tensor of one element with sizes {1}; None for None."""
    return None if tensor is None else tensor.reshape(1)
