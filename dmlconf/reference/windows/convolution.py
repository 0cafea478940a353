"""CONVOLUTION in one, two and three spatial dimensions, and the sums of any convolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.windows.sliding import strided_view
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ConvolutionDesc",
    "FilterGeometry",
    "backward",
    "by_group",
    "convolution",
    "convolution_sums",
    "forward",
    "oriented",
    "reached_input",
]

_Index = tuple[slice | int, ...]

_ALL: Final[_Index] = (slice(None), slice(None), slice(None))
"""The index of everything in the three dimensions before the spatial ones: batches, groups and
channels."""

_AT_ONCE: Final = 1 << 17
"""How many elements of windows are multiplied at once: 1 MiB of FLOAT64 stays in the cache."""


@dataclass(frozen=True)
class FilterGeometry:
    """How the filter moves over a tensor, in each spatial dimension, and the number of groups.

    Attributes:
        start: how many elements before the tensor's first element the first position begins.
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
        """Return the geometry of a desc's attributes for `rank` spatial dimensions.

        Measured: missing strides and dilations are 1, a missing start is 0, and surplus numbers are
        ignored except by `reached_input`.
        """
        attributes = _completed(strides, rank, 1), _completed(dilations, rank, 1)
        return cls(*attributes, _completed(start, rank, 0), groups)

    def within(self, sizes: Sequence[int]) -> FilterGeometry:
        """Return the geometry with strides and dilations of at most `start + size`.

        Longer ones would give the same sums with more padding: the first position begins `start`
        elements before the tensor, so `start + size` elements later the tensor has ended.
        """
        far = [size + start for size, start in zip(sizes, self.start, strict=True)]
        strides, dilations = (
            [min(step, most) for step, most in zip(steps, far, strict=True)]
            for steps in (self.strides, self.dilations)
        )
        return FilterGeometry(strides, dilations, self.start, self.groups)

    def over(self, padded: Array, filter_sizes: Sequence[int], positions: Sequence[int]) -> Array:
        """Return a view with axes of the filter, then of positions, instead of the spatial ones."""
        return strided_view(
            padded,
            padded.ndim - len(filter_sizes),
            filter_sizes,
            positions,
            self.dilations,
            self.strides,
        )

    def reach(self, filter_sizes: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
        """Return how many elements all positions span together, in each spatial dimension."""
        return tuple(
            (count - 1) * stride + (size - 1) * dilation + 1
            for count, stride, size, dilation in zip(
                positions, self.strides, filter_sizes, self.dilations, strict=True
            )
        )


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

    Return `FusedActivation(convolution + bias)`, where FusedActivation and bias may be absent.

    FORWARD adds up, for each element of the output, the products of a window of the input with the
    filter; padding counts as 0. BACKWARD is the transposition: each element of the input is
    multiplied by the filter, and the products are added to a window of the output. Products in the
    padding are dropped. The mode CONVOLUTION flips the filter in every spatial dimension. The last
    OutputPadding elements of each spatial dimension are the activation of 0, without the bias. The
    sizes above are those of FORWARD; the filter of BACKWARD is {C, O / G, F0, ...}. G is
    GroupCount. EndPadding has no other effect than on the output's sizes. Missing strides and
    dilations are 1, missing paddings 0. `reached_input` says what a second StartPadding means in
    one spatial dimension.

    Source: the page of DML_CONVOLUTION_OPERATOR_DESC; the output padding was measured.
    """
    values = reached_input(desc.InputTensor, desc.StartPadding)
    filter_ = oriented(desc.FilterTensor, desc.Mode)
    bias = None if desc.BiasTensor is None else wide(desc.BiasTensor)
    with np.errstate(all="ignore"):
        sums = convolution_sums(desc, values, filter_, bias)
        return fused(sums, desc.FusedActivation).astype(desc.OutputTensor.DataType.dtype)


def forward(values: Array, filter_: Array, sizes: Sequence[int], window: FilterGeometry) -> Array:
    """Return the sum, over the window at each position, of the values times the filter.

    Args:
        values: sizes {batches, channels, ...}; beyond its edges there are zeros.
        filter_: sizes {output channels, channels of a group, ...}; its type is that of the sums.
        sizes: the sizes of the result: {batches, output channels, ...}.
    """
    window = window.within(values.shape[2:])
    parts = by_group(filter_, window.groups)
    _, outputs, channels, *kernel = parts.shape
    positions = tuple(sizes[2:])
    batches = (sizes[0], window.groups)
    padded = np.zeros((*batches, channels, *window.reach(kernel, positions)), filter_.dtype)
    into, taken = _overlap(padded.shape[3:], values.shape[2:], window.start)
    padded[into] = values.reshape(*padded.shape[:3], *values.shape[2:])[taken]
    views = window.over(padded, kernel, positions)
    weights = parts.reshape(*parts.shape[:2], -1)
    sums = np.empty((*batches, outputs, *positions), filter_.dtype)
    # Each block reads all weights of its group, so it may have as many elements as they.
    at_once = max(_AT_ONCE, weights[0].size)
    for batch, group, rows in _parts((*batches, positions[0]), views.size, at_once):
        patches = views[batch, group, :, *(slice(None) for _ in kernel), rows]
        columns = patches.reshape(*patches.shape[:2], weights.shape[-1], -1)
        into_sums = sums[batch, group, :, rows]
        into_sums[...] = (weights[group] @ columns).reshape(into_sums.shape)
    return sums.reshape(sizes)


def backward(values: Array, filter_: Array, sizes: Sequence[int], window: FilterGeometry) -> Array:
    """Return the transposition of `forward`, FLOAT64.

    Each value times the filter is added to the window of the result at the value's position. What a
    window adds beyond the result is dropped.

    Args:
        values: sizes {batches, channels, ...}.
        filter_: sizes {channels, output channels of a group, ...}, FLOAT64.
        sizes: the sizes of the result: {batches, output channels, ...}.
    """
    window = window.within(sizes[2:])
    parts = by_group(filter_, window.groups)
    _, channels, outputs, *kernel = parts.shape
    positions = values.shape[2:]
    batches = (sizes[0], window.groups)
    padded = np.zeros((*batches, outputs, *window.reach(kernel, positions)))
    views = window.over(padded, kernel, positions)
    columns = values.reshape(*batches, channels, -1).astype(np.float64)
    for element in np.ndindex(*kernel):
        added = np.swapaxes(parts[*_ALL, *element], -1, -2) @ columns
        views[*_ALL, *element] += added.reshape(*batches, outputs, *positions)
    result = np.zeros((*batches, outputs, *sizes[2:]))
    taken, into = _overlap(padded.shape[3:], tuple(sizes[2:]), window.start)
    result[into] = padded[taken]
    return result.reshape(sizes)


def convolution_sums(
    desc: ConvolutionDesc, values: Array, filter_: Array, bias: Array | None
) -> Array:
    """Return the convolution plus the bias, with OutputPadding zeros at the end; all FLOAT64."""
    attributes = desc.Strides, desc.Dilations, desc.StartPadding, desc.GroupCount
    window = FilterGeometry.of(values.ndim - 2, *attributes)
    sizes = desc.OutputTensor.Sizes
    added = _completed(desc.OutputPadding, len(sizes) - 2, 0)
    inner = tuple(size - count for size, count in zip(sizes, (0, 0, *added), strict=True))
    convolve = forward if desc.Direction == "FORWARD" else backward
    sums = convolve(values, filter_, inner, window)
    if bias is not None:
        sums += bias
    return np.pad(sums, [(0, 0), (0, 0), *((0, count) for count in added)]) if any(added) else sums


def reached_input(values: Array, start: Sequence[int]) -> Array:
    """Return the input, or zeros if a second StartPadding moves the filter out of {N, C, D0}.

    Measured: DirectML gives a tensor {N, C, D0} a second spatial dimension of size 1, along which
    padding moves the only output element out of the input.
    """
    return np.zeros_like(values) if values.ndim == 3 and any(start[1:2]) else values


def _completed(numbers: Sequence[int], rank: int, neutral: int) -> tuple[int, ...]:
    """Return a number for each spatial dimension, `neutral` where there is none."""
    return (*numbers, *(neutral,) * rank)[:rank]


def by_group(filter_: Array, groups: int) -> Array:
    """Return a filter {n, ...} as {groups, n / groups, ...}."""
    return filter_.reshape(groups, -1, *filter_.shape[1:])


def _parts(counts: Sequence[int], size: int, at_once: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices of leading axes that together cover a tensor of `size` elements.

    A part has at most `at_once` elements, or one index of each axis.

    Args:
        counts: the sizes of the leading axes.
    """
    ranges = []
    for count in counts:
        size //= count
        step = max(1, at_once // size)
        ranges.append([slice(first, first + step) for first in range(0, count, step)])
    yield from product(*ranges)


def _overlap(
    padded: Sequence[int], sizes: Sequence[int], start: Sequence[int]
) -> tuple[_Index, _Index]:
    """Return the slices of a padded tensor and of the tensor itself that hold the same elements.

    Args:
        padded, sizes: the spatial sizes of the padded tensor, and of the tensor.
        start: the padding before the first element.
    """
    extents = [
        (before, max(0, min(size, whole - before)))
        for whole, size, before in zip(padded, sizes, start, strict=True)
    ]
    inside = (slice(before, before + count) for before, count in extents)
    return (*_ALL, *inside), (*_ALL, *(slice(count) for _, count in extents))


def oriented(filter_: Array, mode: str) -> Array:
    """Return a filter in FLOAT64; the mode CONVOLUTION flips it in every spatial dimension."""
    weights = wide(filter_)
    return np.flip(weights, tuple(range(2, weights.ndim))) if mode == "CONVOLUTION" else weights
