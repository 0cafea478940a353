"""Convolutions in one, two and three spatial dimensions.

Source: the page of DML_CONVOLUTION_OPERATOR_DESC.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused, fused_error_scale
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.numbers.rounding import finite_sizes, overflows
from dmlconf.reference.windows.sliding import strided_view
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ConvolutionDesc",
    "FilterGeometry",
    "backward",
    "convolution",
    "convolution_error_scale",
    "forward",
]

_Index = tuple[slice | int, ...]

_ALL: Final[_Index] = (slice(None), slice(None), slice(None))
"""All of the dimensions before the spatial ones: of batches or outputs, groups and channels."""

_AT_ONCE: Final = 1 << 17
"""Elements that the windows see at once, so that they fit the processor's cache."""


@dataclass(frozen=True)
class FilterGeometry:
    """How the filter moves over a tensor, in each spatial dimension.

    Args:
        strides: how far from one position to the next.
        dilations: how far apart neighbours of the filter are.
        start: how far before the first element the first position begins.
        groups: how many parts the channels are divided into.
    """

    strides: Sequence[int]
    dilations: Sequence[int]
    start: Sequence[int]
    groups: int

    @classmethod
    def of(
        cls,
        rank: int,
        strides: Sequence[int],
        dilations: Sequence[int],
        start: Sequence[int],
        groups: int,
    ) -> FilterGeometry:
        """Return the geometry of a desc's attributes, with so many spatial dimensions."""
        attributes = _completed(strides, rank, 1), _completed(dilations, rank, 1)
        return cls(*attributes, _completed(start, rank, 0), groups)

    def within(self, sizes: Sequence[int]) -> FilterGeometry:
        """Return the same geometry over a tensor of these spatial sizes, with no longer steps.

        Whatever step leads beyond the tensor's end sees zeros there, however far it leads.
        """
        far = [size + start for size, start in zip(sizes, self.start, strict=True)]
        strides, dilations = (
            [min(step, most) for step, most in zip(steps, far, strict=True)]
            for steps in (self.strides, self.dilations)
        )
        return FilterGeometry(strides, dilations, self.start, self.groups)

    def over(self, padded: Array, filter_sizes: Sequence[int], positions: Sequence[int]) -> Array:
        """Return a view of spatial dimensions as those of the filter, then those of positions."""
        return strided_view(
            padded,
            padded.ndim - len(filter_sizes),
            filter_sizes,
            positions,
            self.dilations,
            self.strides,
        )

    def reach(self, filter_sizes: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes that so many positions of a filter cover."""
        return tuple(
            (count - 1) * stride + (size - 1) * dilation + 1
            for count, stride, size, dilation in zip(
                positions, self.strides, filter_sizes, self.dilations, strict=True
            )
        )


_LONGEST_WHOLE: Final = 96
"""The most products of FLOAT16 that are added up as one. Measured on DirectML 1.15.4: 108 to 144
may be added up in 4 slices, by the sizes of all tensors; 105 and fewer were not."""


@dataclass(frozen=True, slots=True)
class ConvolutionDesc:
    """The fields of DML_CONVOLUTION_OPERATOR_DESC."""

    InputTensor: Array
    FilterTensor: Array
    BiasTensor: Array | None
    OutputTensor: TensorDesc
    Mode: str
    Direction: str
    Strides: Sequence[int]
    Dilations: Sequence[int]
    StartPadding: Sequence[int]
    EndPadding: Sequence[int]
    OutputPadding: Sequence[int]
    GroupCount: int
    FusedActivation: Mapping[str, Any] | None


@of_fields(ConvolutionDesc)
def convolution(desc: ConvolutionDesc) -> Array:
    """InputTensor {N, C, D0, ...}, FilterTensor {O, C / G, F0, ...}, [BiasTensor {1, O, 1, ...}] ->
    OutputTensor {N, O, E0, ...}; FLOAT32, FLOAT16

    Return the activation of the convolution plus each channel's bias.

    FORWARD adds up the window of the input that an element of the output looks at, times the
    filter. BACKWARD is its transposition: each element of the input adds the filter, times itself,
    to the window of the output that it lies at. CONVOLUTION flips the filter in every spatial
    dimension. The last OutputPadding elements are the activation of 0, without the bias. The sizes
    are those of FORWARD; the filter of BACKWARD is {C, O / G, F0, ...}.

    Source: the page of DML_CONVOLUTION_OPERATOR_DESC; the output padding was measured.
    """
    values = _reached(desc.InputTensor, desc.StartPadding)
    filter_ = _oriented(desc.FilterTensor, desc.Mode)
    bias = None if desc.BiasTensor is None else wide(desc.BiasTensor)
    with np.errstate(all="ignore"):
        sums = _sums(desc, values, filter_, bias)
        return fused(sums, desc.FusedActivation).astype(desc.OutputTensor.DataType.dtype)


@of_fields(ConvolutionDesc)
def convolution_error_scale(desc: ConvolutionDesc) -> ErrorScale:
    """Return the sums of absolute values of what `convolution` adds, through the activation.

    Measured: FLOAT16 may hold the sum before the bias is added, and what is activated. A kernel may
    transform the window (Winograd), so sums of integers need not be exact, unless the window is of
    one element: that leaves a product of matrices.

    Derived in docs/bounds.md, Sums.
    """
    values = wide(_reached(desc.InputTensor, desc.StartPadding))
    filter_ = _oriented(desc.FilterTensor, desc.Mode)
    bias = None if desc.BiasTensor is None else wide(desc.BiasTensor)
    summed = partial(_sums, desc)
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
            # Next to an infinity, finite products may overflow to the other one, which makes NaN.
            finite = summed(finite_sizes(values), finite_sizes(filter_), None)
            scale = scale.overflowing_where(overflows(finite))
        if desc.InputTensor.dtype == np.float16:
            products = summed(values, filter_, None)
            squares = summed(np.square(values), np.square(filter_), None)
            terms = _terms(filter_, desc.Direction, desc.GroupCount)
            scale = scale.in_slices(products, squares, terms, _LONGEST_WHOLE)
            if bias is not None:
                scale = scale.holding(store_sizes(products, scale.exact))
        if desc.FusedActivation is not None:
            sums = summed(values, filter_, bias)
            scale = fused_error_scale(sums, scale, desc.FusedActivation, desc.InputTensor.dtype)
        if desc.Direction == "BACKWARD":
            # With zeros between the elements of the input, infinite weights make NaN of them, of
            # which an activation may make a number.
            unbounded = ~np.isfinite(_grouped(filter_, desc.GroupCount)).all(
                (1, *range(3, filter_.ndim + 1))
            )
            channels = unbounded.reshape(-1, *(1,) * (scale.sums.ndim - 2))
            scale = scale.overflowing_where(channels)
            if desc.FusedActivation is not None and channels.any():
                dtype = desc.OutputTensor.DataType.dtype
                sums = np.where(channels, np.nan, summed(values, filter_, bias))
                scale = replace(scale, others=(fused(sums, desc.FusedActivation).astype(dtype),))
        return scale


def forward(values: Array, filter_: Array, sizes: Sequence[int], window: FilterGeometry) -> Array:
    """Return the sum, over the window at each position, of the values times the filter, FLOAT64.

    Args:
        values: sizes {batches, channels, ...}; beyond its edges there are zeros.
        filter_: sizes {output channels, channels of a group, ...}, FLOAT64.
        sizes: of the result: {batches, output channels, ...}.
        window: how the filter moves over the values.
    """
    window = window.within(values.shape[2:])
    grouped = _grouped(filter_, window.groups)
    _, outputs, channels, *kernel = grouped.shape
    positions = tuple(sizes[2:])
    batches = (sizes[0], window.groups)
    padded = np.zeros((*batches, channels, *window.reach(kernel, positions)))
    into, taken = _overlap(padded.shape[3:], values.shape[2:], window.start)
    padded[into] = values.reshape(*padded.shape[:3], *values.shape[2:])[taken]
    views = window.over(padded, kernel, positions)
    weights = grouped.reshape(*grouped.shape[:2], -1)
    sums = np.empty((*batches, outputs, *positions))
    # Each block reads the weights again.
    at_once = max(_AT_ONCE, weights[0].size)
    for batch, group, rows in _parts((*batches, positions[0]), views.size, at_once):
        patches = views[batch, group, :, *(slice(None) for _ in kernel), rows]
        columns = patches.reshape(*patches.shape[:2], weights.shape[-1], -1)
        into_sums = sums[batch, group, :, rows]
        into_sums[...] = (weights[group] @ columns).reshape(into_sums.shape)
    return sums.reshape(sizes)


def backward(values: Array, filter_: Array, sizes: Sequence[int], window: FilterGeometry) -> Array:
    """Return the transposition of `forward`: windows of the result are added to, FLOAT64.

    Args:
        values: sizes {batches, channels, ...}.
        filter_: sizes {channels, output channels of a group, ...}, FLOAT64.
        sizes: of the result: {batches, output channels, ...}; what lies beyond is dropped.
        window: how the filter moves over the result.
    """
    window = window.within(sizes[2:])
    grouped = _grouped(filter_, window.groups)
    _, channels, outputs, *kernel = grouped.shape
    positions = values.shape[2:]
    batches = (sizes[0], window.groups)
    padded = np.zeros((*batches, outputs, *window.reach(kernel, positions)))
    views = window.over(padded, kernel, positions)
    columns = values.reshape(*batches, channels, -1).astype(np.float64)
    for place in np.ndindex(*kernel):
        added = np.swapaxes(grouped[*_ALL, *place], -1, -2) @ columns
        views[*_ALL, *place] += added.reshape(*batches, outputs, *positions)
    result = np.zeros((*batches, outputs, *sizes[2:]))
    taken, into = _overlap(padded.shape[3:], tuple(sizes[2:]), window.start)
    result[into] = padded[taken]
    return result.reshape(sizes)


_DIRECTIONS: Final = {"FORWARD": forward, "BACKWARD": backward}


def _sums(desc: ConvolutionDesc, values: Array, filter_: Array, bias: Array | None) -> Array:
    """Return the convolution plus the bias, and zeros behind it, FLOAT64."""
    attributes = desc.Strides, desc.Dilations, desc.StartPadding, desc.GroupCount
    window = FilterGeometry.of(values.ndim - 2, *attributes)
    sizes = desc.OutputTensor.Sizes
    added = _completed(desc.OutputPadding, len(sizes) - 2, 0)
    inner = tuple(size - count for size, count in zip(sizes, (0, 0, *added), strict=True))
    sums = _DIRECTIONS[desc.Direction](values, filter_, inner, window)
    if bias is not None:
        sums += bias
    return np.pad(sums, [(0, 0), (0, 0), *((0, count) for count in added)]) if any(added) else sums


def _terms(filter_: Array, direction: str, groups: int) -> int:
    """Return how many products an element adds up at most."""
    outputs, inputs, *window = filter_.shape
    return int(math.prod(window) * (inputs if direction == "FORWARD" else outputs // groups))


def _reached(values: Array, start: Sequence[int]) -> Array:
    """Return the input, or zeros where the filter is outside of it in a dimension that it lacks.

    Measured: tensors of three dimensions have a second spatial one of size 1, whose padding counts.
    """
    return np.zeros_like(values) if values.ndim == 3 and any(start[1:2]) else values


def _completed(numbers: Sequence[int], rank: int, neutral: int) -> tuple[int, ...]:
    """Return a number for each spatial dimension. Measured: DirectML completes short arrays."""
    return (*numbers, *(neutral,) * rank)[:rank]


def _grouped(filter_: Array, groups: int) -> Array:
    return filter_.reshape(groups, -1, *filter_.shape[1:])


def _parts(counts: Sequence[int], size: int, at_once: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices of axes that together cover a tensor, each of them of so many elements."""
    ranges = []
    for count in counts:
        size //= count
        step = max(1, at_once // size)
        ranges.append([slice(first, first + step) for first in range(0, count, step)])
    yield from product(*ranges)


def _overlap(
    padded: Sequence[int], sizes: Sequence[int], start: Sequence[int]
) -> tuple[_Index, _Index]:
    """Return which part of a padded tensor is which part of the one without the padding."""
    extents = [
        (before, max(0, min(size, whole - before)))
        for whole, size, before in zip(padded, sizes, start, strict=True)
    ]
    inside = (slice(before, before + count) for before, count in extents)
    return (*_ALL, *inside), (*_ALL, *(slice(count) for _, count in extents))


def _oriented(filter_: Array, mode: str) -> Array:
    weights = wide(filter_)
    return np.flip(weights, tuple(range(2, weights.ndim))) if mode == "CONVOLUTION" else weights
