"""Permitted results of quantized convolutions and poolings besides the reference's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.permitted.quantization.arithmetic import EXACT, quantized_sum_candidates
from dmlconf.permitted.quantization.quotients import is_power_of_two, quantized_candidates
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.quantization.arithmetic import centred
from dmlconf.reference.quantization.windows import (
    QuantizedLinearAveragePoolingDesc,
    QuantizedLinearConvolutionDesc,
    by_channel,
    one_element,
)
from dmlconf.reference.windows.sliding import elements, sums, windows

__all__ = [
    "quantized_linear_average_pooling_candidates",
    "quantized_linear_convolution_candidates",
]


@of_fields(QuantizedLinearConvolutionDesc)
def quantized_linear_convolution_candidates(
    desc: QuantizedLinearConvolutionDesc,
) -> Sequence[Interval]:
    """Return the candidates of the convolution, as `quantized_sum_candidates` does for sums."""
    values, filter_ = desc.centred()
    sums = desc.convolved(values, filter_)
    error_scale = desc.convolved(np.abs(values), np.abs(filter_))
    if desc.BiasTensor is not None:
        bias = by_channel(desc.BiasTensor.astype(np.float64))
        sums += bias
        error_scale += np.abs(bias)
    products = prod(desc.FilterTensor.shape[1:]) + 1
    zero_point = one_element(desc.OutputZeroPointTensor)
    intervals = quantized_sum_candidates(
        sums, error_scale, products, desc.scales(), zero_point, desc.OutputTensor
    )
    # `desc.centred` gives tensors of 3 dimensions a fourth one, of size 1, as DirectML does.
    sizes = desc.OutputTensor.Sizes
    return [(lowest.reshape(sizes), highest.reshape(sizes)) for lowest, highest in intervals]


@of_fields(QuantizedLinearAveragePoolingDesc)
def quantized_linear_average_pooling_candidates(
    desc: QuantizedLinearAveragePoolingDesc,
) -> Sequence[Interval]:
    """Return the candidates of the averages; each operation may round toward zero or to nearest.

    If `is_power_of_two` for all scales and the count of elements, and if FLOAT32 holds the sum,
    nothing is rounded. Any result is right if a scale is 0 or not finite, if the count is 0, or
    if the scaled sum of the terms' sizes exceeds the largest FLOAT32 number.
    """
    spatial = desc.Strides, desc.WindowSize, desc.StartPadding, desc.Dilations
    over = windows(desc.InputTensor.shape, desc.OutputTensor.Sizes, *spatial)
    rank = desc.InputTensor.ndim
    size = prod(desc.WindowSize)
    zero_point = by_channel(desc.OutputZeroPointTensor, rank)
    with np.errstate(all="ignore"):
        values = centred(desc.InputTensor, by_channel(desc.InputZeroPointTensor, rank))
        scale, last = (
            by_channel(tensor, rank).astype(np.float64)
            for tensor in (desc.InputScaleTensor, desc.OutputScaleTensor)
        )
        count = size if desc.IncludePadding else elements(over)
        quotient = sums(values, over) * scale / count / last
        error_scale = sums(np.abs(values), over)
        terms = error_scale * np.abs(scale)
        exact = is_power_of_two(scale) & is_power_of_two(last) & is_power_of_two(np.asarray(count))
        exact = exact & (error_scale <= EXACT)
        error = terms / count / np.abs(last) * ((size + 5) * STEP)
        error = np.where(exact, 0.0, error)
        undefined = ~(terms <= np.finfo(np.float32).max) | (scale == 0) | (last == 0)
        undefined |= ~np.isfinite(last) | (count == 0)
    zero_points = zero_point, zero_point
    return quantized_candidates(
        (quotient, error), zero_points, desc.OutputTensor.DataType, undefined, last
    )
