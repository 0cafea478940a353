"""Gradients of samples with uncertain coordinates: the elements that they may be added to.

Source: docs/bounds.md, Gradients of regions of interest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dmlconf.permitted.regions.sampling import UncertainBlock
from dmlconf.permitted.regions.shares import Share, axis_shares, coordinates_within
from dmlconf.reference.regions.parts import Part, elements_of
from dmlconf.reference.regions.sampling import Reading
from dmlconf.reference.regions.slopes import elements_around
from dmlconf.tensors.datatypes import Array

__all__ = ["UncertainPart", "slope_scales"]


@dataclass(frozen=True)
class UncertainPart(Part):
    """Samples whose coordinates are not certain, and what elements may get of their gradients."""

    block: UncertainBlock

    def certainly_inside(self) -> Array:
        """Return which samples are inside the input, however far off their coordinates are."""
        corners = [self.reading.inside(y, x) for y, x in product(*self._ends())]
        inside: Array = np.logical_and.reduce(corners)
        return inside

    def possible_gradient(self) -> Array:
        """Return the samples' gradients; 0 for samples that are certainly outside the input."""
        corners = [self.reading.inside(y, x) for y, x in product(*self._ends())]
        return np.where(np.logical_or.reduce(corners), self.gradient, 0)

    def _ends(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return the least, the exact and the greatest rows and columns of samples."""
        block = self.block
        rows = block.y - block.y_errors, block.y, block.y + block.y_errors
        columns = block.x - block.x_errors, block.x, block.x + block.x_errors
        return rows, columns

    def coordinates(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return the rows and columns at which slopes may be least or greatest."""
        block = self.block
        rows = coordinates_within(block.y, block.y_errors)
        return rows, coordinates_within(block.x, block.x_errors)

    def may_lie_beyond_an_element(self) -> Array:
        """Return which samples may lie on either side of an element, {..., channels: 1}."""
        jumps = np.zeros(1, bool)
        for before, _, behind in self._ends():
            jumps = jumps | (np.floor(before) != np.floor(behind))
        return jumps[..., np.newaxis]

    def shares(self) -> Iterator[tuple[Array, Share]]:
        """Yield the indices of elements of all channels, and their shares {..., channels: 1}."""
        block, reading = self.block, self.reading
        height, width = reading.values.shape[1:3]
        rows = [*axis_shares(block.y, block.y_errors, height, linear=reading.linear)]
        columns = [*axis_shares(block.x, block.x_errors, width, linear=reading.linear)]
        for row, column in product(rows, columns):
            elements = elements_of(reading, row.index, column.index)
            share, least, most = (
                (of_row * of_column)[..., np.newaxis]
                for of_row, of_column in (
                    (row.share, column.share),
                    (row.least, column.least),
                    (row.most, column.most),
                )
            )
            yield elements, Share(elements, share, least, most)


def slope_scales(reading: Reading, y: Array, x: Array) -> tuple[Array, Array]:
    """Return the error scales of slopes along x and along y.

    A slope is the difference of two weighted means, of two elements each. Its error scale is the
    sum of these means for absolute values.
    """
    down, across = ((at - np.floor(at))[..., np.newaxis] for at in (y, x))
    sizes = [np.abs(element) for element in elements_around(reading, y, x)]
    top_left, top_right, bottom_left, bottom_right = sizes
    upper, lower = top_left + top_right, bottom_left + bottom_right
    left, right = top_left + bottom_left, top_right + bottom_right
    return upper * (1 - down) + lower * down, left * (1 - across) + right * across
