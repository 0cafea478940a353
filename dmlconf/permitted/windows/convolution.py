"""Permitted errors of CONVOLUTION.

Derived in docs/bounds.md, Sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from dmlconf.permitted.activation.fused import fused_error_scale, limiting_products
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.permitted.numbers.rounding import finite_or_zero, overflows
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
        single = math.prod(desc.FilterTensor.shape[2:]) == 1
        if single:
            quantum = quantum_of(values, filter_)
            if bias is not None:
                quantum = min(quantum, quantum_of(bias))
        dtype = desc.InputTensor.dtype
        sizes = greatest = summed(np.abs(values), np.abs(filter_), absolute_bias)
        scale = ErrorScale(sizes, quantum=quantum)
        of_finite = None
        if not np.isfinite(sizes).all():
            # If finite products overflow to one infinity, their sum with the opposite one is NaN.
            finite, weights = finite_or_zero(values), finite_or_zero(filter_)
            added = None if bias is None else finite_or_zero(bias)
            size_added = None if added is None else np.abs(added)
            greatest = summed(np.abs(finite), np.abs(weights), size_added)
            of_finite = summed(finite, weights, added), greatest
            # A term that is NaN leaves NaN.
            nan = np.isnan(summed(values, filter_, bias))
            scale = scale.overflowing_where(overflows(greatest) & ~nan)
        if single and overflows(greatest, dtype).any():
            # A kernel that transforms larger windows may subtract terms of equal signs.
            scale = scale.signed(summed(values, filter_, bias), of_finite=of_finite)
        products = None
        if dtype == np.float16:
            products = summed(values, filter_, None)
            squares = summed(np.square(values), np.square(filter_), None)
            terms = _terms(filter_, desc.Direction, desc.GroupCount)
            beside = 0.0 if absolute_bias is None else absolute_bias
            scale = scale.in_slices(products, squares, terms, _LONGEST_WHOLE, beside)
            if bias is not None:
                scale = scale.holding(store_sizes(products, scale.exact))
        if desc.FusedActivation is not None:
            sums = summed(values, filter_, bias)
            scale = fused_error_scale(sums, scale, desc.FusedActivation, dtype, only_sums=True)
        if products is not None and bias is not None:
            added = bias.reshape(-1, *(1,) * (products.ndim - 2))
            scale = limiting_products(scale, products, added, desc.FusedActivation, dtype)
        others: list[Array] = []
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
