"""Windows that slide over the spatial axes of a tensor.

A window is reduced along one axis after another: its sum is the sum of the sums of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = [
    "Window",
    "elements",
    "greatest",
    "indexed",
    "spread",
    "strided_view",
    "sums",
    "windows",
]

_FIRST_SPATIAL: Final = 2
"""The first axis after batches and channels."""

_BLOCK: Final = 1 << 16
"""About how many elements are reduced at once: 512 KiB of FLOAT64 stay in the processor's cache."""

_NOWHERE: Final = np.int64(np.iinfo(np.int64).max)
"""The index of padding while the least index is sought; `indexed` returns -1 in its place."""


@dataclass(frozen=True)
class Window:
    """The window along one axis.

    Attributes:
        extent: how many elements the tensor has along the axis.
        positions: how many positions the window takes.
        start: how many elements before the first element the first position begins.
    """

    axis: int
    extent: int
    positions: int
    size: int
    stride: int
    dilation: int
    start: int

    @property
    def reach(self) -> int:
        """How many elements all positions span, with padding and gaps between positions."""
        return max(0, (self.positions - 1) * self.stride + (self.size - 1) * self.dilation + 1)

    def parts(self) -> Iterator[tuple[slice, ...]]:
        """Yield for each element of the window where it lies at all positions.

        The slices are for a tensor that has at least `reach` elements along the axis. With a stride
        of 0, a slice has one element.
        """
        before = (slice(None),) * self.axis
        for element in range(self.size):
            first = element * self.dilation
            behind = first + (self.positions - 1) * self.stride + 1
            yield (*before, slice(first, behind, self.stride or 1))

    def view(self, tensor: Array) -> Array:
        """Return a view of a tensor that has at least `reach` elements along the axis.

        Two axes replace this axis: one of the window's elements, and one of positions.
        """
        counts, steps = ((self.size,), (self.positions,)), ((self.dilation,), (self.stride,))
        return strided_view(tensor, self.axis, *counts, *steps)

    def padded(self, tensor: Array, outside: Any) -> Array:
        """Return a tensor of at least `reach` elements along the axis, padded with `outside`."""
        if self.start == 0 and self.reach <= self.extent:
            return tensor
        padded = np.full(_resized(tensor.shape, self.axis, self.reach), outside, tensor.dtype)
        before = (slice(None),) * self.axis
        inside = padded[(*before, slice(self.start, self.start + self.extent))]
        inside[...] = tensor[(*before, slice(inside.shape[self.axis]))]
        return padded

    def cropped(self, tensor: Array) -> Array:
        """Return a tensor without the padding of `padded`, with zeros beyond the window's reach."""
        before = (slice(None),) * self.axis
        inside = tensor[(*before, slice(self.start, self.start + self.extent))]
        padded = np.zeros(_resized(tensor.shape, self.axis, self.extent), tensor.dtype)
        padded[(*before, slice(inside.shape[self.axis]))] = inside
        return padded


def windows(
    extents: Sequence[int],
    positions: Sequence[int],
    strides: Sequence[int],
    sizes: Sequence[int],
    start: Sequence[int],
    dilations: Sequence[int] | None = None,
) -> list[Window]:
    """Return the window along each spatial axis.

    Args:
        extents: the sizes of the tensor over which the window slides, with batches and channels.
        positions: the sizes of the tensor with an element for each position, likewise.
        strides, sizes, start, dilations: a number for each spatial axis; surplus numbers are
            ignored. Without `dilations`, all are 1.
    """
    axes = range(_FIRST_SPATIAL, len(extents))
    spatial = sizes, strides, dilations or (1,) * len(sizes), start
    numbers = zip(extents[_FIRST_SPATIAL:], positions[_FIRST_SPATIAL:], *spatial, strict=False)
    return [_within(Window(axis, *of_axis)) for axis, of_axis in zip(axes, numbers, strict=True)]


def _within(window: Window) -> Window:
    """Return the window with a stride and a dilation of at most `start + extent`.

    Longer ones would only need more padding: windows begin at most `start` elements before the
    tensor, so that a step of `start + extent` elements leads beyond its end.
    """
    far = window.start + window.extent
    stride, dilation = min(window.stride, far), min(window.dilation, far)
    return replace(window, stride=stride, dilation=dilation)


def strided_view(
    tensor: Array,
    first: int,
    sizes: Sequence[int],
    positions: Sequence[int],
    dilations: Sequence[int],
    strides: Sequence[int],
) -> Array:
    """Return a view with axes for the elements of a window, and then for its positions.

    The new axes replace `len(sizes)` axes from `first` on.

    Args:
        tensor: has all elements that the window reaches.
    """
    behind = first + len(sizes)
    steps = tensor.strides[first:behind]
    within = [step * dilation for step, dilation in zip(steps, dilations, strict=True)]
    between = [step * stride for step, stride in zip(steps, strides, strict=True)]
    return np.lib.stride_tricks.as_strided(
        tensor,
        (*tensor.shape[:first], *sizes, *positions, *tensor.shape[behind:]),
        (*tensor.strides[:first], *within, *between, *tensor.strides[behind:]),
    )


def sums(tensor: Array, over: Sequence[Window]) -> Array:
    """Return the sum of the window's elements at each position, FLOAT64; padding counts as 0."""
    return _reduced(tensor, over, np.add, 0.0, np.dtype(np.float64))


def greatest(tensor: Array, over: Sequence[Window], lowest: Any) -> Array:
    """Return the greatest of `lowest` and the window's numbers at each position; NaN is ignored."""
    return _reduced(tensor, over, np.fmax, lowest, tensor.dtype)


def indexed(tensor: Array, over: Sequence[Window], lowest: Any) -> tuple[Array, Array]:
    """Return the greatest numbers, as `greatest` does, and the index where each occurs first.

    NaN and numbers below `lowest` count as `lowest`. Indices count all elements of the tensor in
    row-major order. The index is -1 for a window of padding alone.
    """
    images = _images(tensor)
    inside = np.arange(prod(images.shape[2:])).reshape(1, 1, *images.shape[2:])
    shape = (*images.shape[:2], *(window.positions for window in over))
    best, first = np.empty(shape, tensor.dtype), np.empty(shape, inside.dtype)
    for block in _blocks(images):
        numbers = np.fmax(images[block], lowest)
        best[block], first[block] = _first_greatest(numbers, inside, over, lowest)
    before = np.arange(images.shape[1]).reshape(-1, *(1 for _ in over)) * inside.size
    first = np.where(first == _NOWHERE, -1, first + before)
    sizes = *tensor.shape[:_FIRST_SPATIAL], *shape[2:]
    return best.reshape(sizes), first.reshape(sizes)


def spread(shares: Array, over: Sequence[Window]) -> Array:
    """Return the transposition of `sums`: zeros, with each share added to all of its window."""
    for window in over:
        if not window.stride:
            shares = shares.sum(window.axis, keepdims=True)
        output = np.zeros(_resized(shares.shape, window.axis, window.reach))
        for part in window.parts():
            output[part] += shares
        shares = window.cropped(output)
    return shares


def elements(over: Sequence[Window]) -> Array:
    """Return how many elements besides padding the window has at each position, {1, 1, P0, ...}."""
    counts: Array = np.ones((1,) * _FIRST_SPATIAL, np.int64)
    for window in over:
        counts = counts[..., np.newaxis] * _counted(window)
    return counts


def _reduced(
    tensor: Array,
    over: Sequence[Window],
    combine: np.ufunc,
    neutral: Any,
    dtype: np.dtype[Any],
) -> Array:
    """Combine all elements in each window; elements outside the tensor count as `neutral`."""
    images = _images(tensor)
    output = np.empty((*images.shape[:2], *(window.positions for window in over)), dtype)
    for block in _blocks(images):
        numbers = images[block]
        for window in over:
            numbers = _along(numbers, window, combine, neutral, dtype)
        combine(numbers, neutral, out=output[block])
    return output.reshape(*tensor.shape[:_FIRST_SPATIAL], *output.shape[2:])


def _along(
    numbers: Array, window: Window, combine: np.ufunc, neutral: Any, dtype: np.dtype[Any]
) -> Array:
    if not window.size:
        return np.full(_resized(numbers.shape, window.axis, window.positions), neutral, dtype)
    padded = window.padded(numbers, neutral)
    if window.positions < window.size:
        reduced: Array = combine.reduce(window.view(padded), window.axis, dtype)
        return reduced
    first, *others = window.parts()
    result = padded[first].astype(dtype)
    for part in others:
        combine(result, padded[part], out=result)
    return result


def _first_greatest(
    numbers: Array, indices: Array, over: Sequence[Window], lowest: Any
) -> tuple[Array, Array]:
    """Return the window's greatest number, and the least index of an element equal to it.

    No number may be NaN or below `lowest`. Padding counts as `lowest`, with an index beyond all
    others.
    """
    for window in over:
        padded, padded_indices = window.padded(numbers, lowest), window.padded(indices, _NOWHERE)
        numbers = _along(numbers, window, np.maximum, lowest, numbers.dtype)
        indices = np.full(numbers.shape, _NOWHERE)
        for part in window.parts():
            other = (padded[part] < numbers) * _NOWHERE
            np.minimum(indices, np.maximum(padded_indices[part], other), out=indices)
    return numbers, indices


def _images(tensor: Array) -> Array:
    """Return the tensor with all of its batches and channels as channels of a single batch."""
    return tensor.reshape(1, -1, *tensor.shape[_FIRST_SPATIAL:])


def _blocks(images: Array) -> Iterator[tuple[slice, slice]]:
    """Yield slices of images: as many channels as `_BLOCK` permits, and at least one."""
    step = max(1, _BLOCK * images.shape[1] // images.size)
    for first in range(0, images.shape[1], step):
        yield slice(None), slice(first, first + step)


def _resized(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _counted(window: Window) -> Array:
    begins = np.arange(window.positions)[:, np.newaxis] * window.stride - window.start
    positions = begins + np.arange(window.size) * window.dilation
    counts: Array = ((positions >= 0) & (positions < window.extent)).sum(axis=1)
    return counts
