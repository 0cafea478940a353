"""Windows that slide over the spatial axes of a tensor.

A window is a product of one along each axis, so the axes are reduced one after another, each with a
step for every place of the window along it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["Window", "elements", "greatest", "indexed", "spread", "sums", "windows"]

_FIRST_SPATIAL: Final = 2
"""Batches and channels come before the spatial axes."""


@dataclass(frozen=True)
class Window:
    """The window along one axis.

    Args:
        axis: the axis.
        extent: how many elements the tensor has along it.
        positions: how many positions the window takes.
        size: how many places the window has.
        stride: how far from one position to the next.
        dilation: how far from one place to the next.
        start: how far before the first element the first position begins.
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
        """How far it is from the first place at the first position to behind the last one."""
        return max(0, (self.positions - 1) * self.stride + (self.size - 1) * self.dilation + 1)

    def places(self) -> Iterator[tuple[slice, ...]]:
        """Yield for each place which part of a tensor of this reach it sees at the positions."""
        before = (slice(None),) * self.axis
        for place in range(self.size):
            first = place * self.dilation
            behind = first + (self.positions - 1) * self.stride + 1
            yield (*before, slice(first, behind, self.stride or 1))

    def padded(self, tensor: Array, outside: Any) -> Array:
        """Return as much of the tensor as the window reaches, with a value outside of it."""
        if self.start == 0 and self.reach <= self.extent:
            return tensor
        padded = np.full(_resized(tensor.shape, self.axis, self.reach), outside, tensor.dtype)
        before = (slice(None),) * self.axis
        inside = padded[(*before, slice(self.start, self.start + self.extent))]
        inside[...] = tensor[(*before, slice(inside.shape[self.axis]))]
        return padded

    def cropped(self, tensor: Array) -> Array:
        """Return the part of a tensor of this reach that lies inside, with zeros behind it."""
        before = (slice(None),) * self.axis
        inside = tensor[(*before, slice(self.start, self.start + self.extent))]
        found = np.zeros(_resized(tensor.shape, self.axis, self.extent), tensor.dtype)
        found[(*before, slice(inside.shape[self.axis]))] = inside
        return found


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
        extents: sizes of the tensor that the window slides over.
        positions: sizes of what it gives, with one element for each position.
        strides: how far from one position to the next.
        sizes: how many places the window has.
        start: how far before the first element the first position begins.
        dilations: how far from one place to the next; 1 if left out.

    The attributes may have more numbers than there are spatial axes.
    """
    axes = range(_FIRST_SPATIAL, len(extents))
    spatial = sizes, strides, dilations or (1,) * len(sizes), start
    numbers = zip(extents[_FIRST_SPATIAL:], positions[_FIRST_SPATIAL:], *spatial, strict=False)
    return [Window(axis, *of_axis) for axis, of_axis in zip(axes, numbers, strict=True)]


def sums(tensor: Array, over: Sequence[Window]) -> Array:
    """Return the sum of what the window sees at each position."""
    return _reduced(tensor, over, np.add, 0)


def greatest(tensor: Array, over: Sequence[Window], lowest: Any) -> Array:
    """Return the greatest number that the window sees, but NaN, and at least the lowest."""
    return _reduced(tensor, over, np.fmax, lowest)


def indexed(tensor: Array, over: Sequence[Window], lowest: Any) -> tuple[Array, Array]:
    """Return what `greatest` does, and the index of the first such element in the whole tensor.

    What does not exceed the lowest number counts as equal to it. The index is -1 where the window
    sees nothing but padding.
    """
    best = np.fmax(tensor, lowest)
    indices = np.arange(tensor.size).reshape(tensor.shape)
    for window in reversed(over):
        numbers, places = window.padded(best, lowest), window.padded(indices, -1)
        best = np.full(_resized(best.shape, window.axis, window.positions), lowest, best.dtype)
        indices = np.full(best.shape, -1)
        for seen in window.places():
            better = (numbers[seen] > best) | ((indices < 0) & (places[seen] >= 0))
            np.copyto(best, numbers[seen], where=better)
            np.copyto(indices, places[seen], where=better)
    return best, indices


def spread(shares: Array, over: Sequence[Window]) -> Array:
    """Return the transposition of `sums`: each share added to all that its window sees."""
    for window in over:
        found = np.zeros(_resized(shares.shape, window.axis, window.reach))
        for seen in window.places():
            found[seen] += shares
        shares = window.cropped(found)
    return shares


def elements(over: Sequence[Window]) -> Array:
    """Return how many elements, and not padding, the window sees at each spatial position."""
    counts: Array = np.ones((1,) * _FIRST_SPATIAL, np.int64)
    for window in over:
        counts = counts[..., np.newaxis] * _counted(window)
    return counts


def _reduced(tensor: Array, over: Sequence[Window], combine: np.ufunc, neutral: Any) -> Array:
    """Return what combining all that the window sees gives, starting from a neutral number."""
    for window in reversed(over):
        padded = window.padded(tensor, neutral)
        sizes = _resized(tensor.shape, window.axis, window.positions)
        tensor = np.full(sizes, neutral, tensor.dtype)
        for seen in window.places():
            combine(tensor, padded[seen], out=tensor)
    return tensor


def _resized(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _counted(window: Window) -> Array:
    begins = np.arange(window.positions)[:, np.newaxis] * window.stride - window.start
    seen = begins + np.arange(window.size) * window.dilation
    counts: Array = ((seen >= 0) & (seen < window.extent)).sum(axis=1)
    return counts
