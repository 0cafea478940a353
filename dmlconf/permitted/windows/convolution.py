"""Permitted errors of CONVOLUTION.

Derived in docs/bounds.md, Sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from dmlconf.permitted.activation.fused import fused_error_scale, results_of_limited_products
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.permitted.numbers.rounding import finite_sizes, overflows
from dmlconf.permitted.numbers.terms import values_repeat
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.windows.convolution import (
    ConvolutionDesc,
    by_group,
    convolution_sums,
    oriented,
    reached_input,
)
from dmlconf.tensors.datatypes import Array

__all__ = [
    "convolution_error_scale",
]

_LONGEST_WHOLE: Final = 96
"""A sum of more FLOAT16 products than this may be cut into slices.

Measured on DirectML 1.15.4: some sums of 108 products are cut, and none of up to 105 products.
"""


@of_fields(ConvolutionDesc)
def convolution_error_scale(desc: ConvolutionDesc) -> ErrorScale:
    """Return the error scale: the sums of absolute values, carried through the activation.

    Measured: kernels may store the sum in FLOAT16 before the bias is added, and before the
    activation. Sums of integers count as exact only for a window of one element, since a kernel may
    transform larger windows (Winograd).

    Derived in docs/bounds.md, Sums.
    """
    values = wide(reached_input(desc.InputTensor, desc.StartPadding))
    filter_ = oriented(desc.FilterTensor, desc.Mode)
    bias = None if desc.BiasTensor is None else wide(desc.BiasTensor)
    summed = partial(convolution_sums, desc)
    with np.errstate(all="ignore"):
        absolute_bias = None if bias is None else np.abs(bias)
        quantum = 0.0
        if math.prod(desc.FilterTensor.shape[2:]) == 1:
            quantum = quantum_of(values, filter_)
            if bias is not None:
                quantum = min(quantum, quantum_of(bias))
        sizes = summed(np.abs(values), np.abs(filter_), absolute_bias)
        scale = ErrorScale(sizes, quantum=quantum)
        if not np.isfinite(scale.sums).all():
            # If finite products overflow to one infinity, their sum with the opposite one is NaN.
            finite = summed(finite_sizes(values), finite_sizes(filter_), None)
            # A term that is NaN leaves NaN.
            nan = np.isnan(summed(values, filter_, bias))
            scale = scale.overflowing_where(overflows(finite) & ~nan)
        dtype = desc.InputTensor.dtype
        others: list[Array] = []
        if dtype == np.float16:
            products = summed(values, filter_, None)
            squares = summed(np.square(values), np.square(filter_), None)
            terms = _terms(filter_, desc.Direction, desc.GroupCount)
            added = 0.0 if absolute_bias is None else absolute_bias
            scale = scale.in_slices(products, squares, terms, _LONGEST_WHOLE, added)
            if bias is not None:
                scale = scale.holding(store_sizes(products, scale.exact))
                bias = bias.reshape(-1, *(1,) * (products.ndim - 2))
                others += results_of_limited_products(products, bias, desc.FusedActivation)
        if desc.FusedActivation is not None:
            sums = summed(values, filter_, bias)
            scale = fused_error_scale(sums, scale, desc.FusedActivation, dtype)
        elif (
            # A kernel that transforms larger windows may subtract terms of equal signs.
            desc.Direction == "FORWARD"
            and math.prod(filter_.shape[2:]) == 1
            and overflows(sizes, dtype).any()
            and np.isfinite(sizes).all()
        ):
            scale = scale.signed(summed(values, filter_, bias))
        if desc.Direction == "BACKWARD":
            # A kernel may multiply infinite weights by the zeros between the input's elements. The
            # product is NaN, for which an activation may return a number.
            unbounded = ~np.isfinite(by_group(filter_, desc.GroupCount)).all(
                (1, *range(3, filter_.ndim + 1))
            )
            channels = unbounded.reshape(-1, *(1,) * (scale.sums.ndim - 2))
            if channels.any():
                sums = np.where(channels, np.nan, summed(values, filter_, bias))
                others.append(fused(sums, desc.FusedActivation))
                if desc.FusedActivation is not None:
                    scale = scale.overflowing_where(channels)
        weights = filter_
        if desc.Direction == "BACKWARD":
            parts = np.swapaxes(by_group(filter_, desc.GroupCount), 1, 2)
            weights = parts.reshape(-1, *parts.shape[2:])
        repeat = dtype == np.float32 and _repeats(desc.InputTensor) and _repeats(weights)
        return replace(scale.with_others(others, dtype), terms_repeat=repeat)


def _repeats(tensor: Array) -> bool:
    """Return whether `values_repeat` holds along the channels, or within an item of the first axis.

    An item is an image, or the weights of an output channel.
    """
    tensor = tensor.astype(np.float32, copy=False)
    return values_repeat(tensor, 1) or values_repeat(tensor.reshape(len(tensor), -1), 1)


def _terms(filter_: Array, direction: str, groups: int) -> int:
    """Return how many products are added up at most for an output element."""
    outputs, inputs, *window = filter_.shape
    return int(math.prod(window) * (inputs if direction == "FORWARD" else outputs // groups))
