"""The gradients that samples with uncertain coordinates may get and pass on to elements.

Source: docs/bounds.md, Gradients of regions of interest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.permitted.regions.sampling import UncertainBlock, greatest
from dmlconf.permitted.regions.shares import Share, axis_shares, coordinates_within
from dmlconf.reference.regions.parts import Part, elements_of
from dmlconf.reference.regions.sampling import Reading
from dmlconf.reference.regions.slopes import elements_around
from dmlconf.tensors.datatypes import Array

__all__ = ["UncertainPart", "slope_scales", "value_of_first_greatest"]

_INTERPOLATION_OPERATIONS: Final = 8
"""FLOAT32 operations that interpolate a sample: in each of two dimensions a difference from 1, two
products and a sum."""


@dataclass(frozen=True)
class UncertainPart(Part):
    """Samples whose coordinates are uncertain, and the gradients that they may get.

    Attributes:
        in_doubt: the output's gradient for samples that may be the first of the greatest, if
            several may be; 0 for all others.
        needed: the least value with which a sample may be the first of the greatest; negative
            infinity if all samples get a share.
    """

    block: UncertainBlock
    in_doubt: Array
    needed: Array

    @classmethod
    def of(cls, block: UncertainBlock, part: Part, gradient: Array | None) -> UncertainPart:
        """Return the samples of a part with their errors.

        Args:
            gradient: the outputs' gradients, sizes {regions, 1, 1, rows, columns, channels}, if the
                first of the greatest samples gets them; None if all samples get a share.
        """
        samples = cls(block, part.reading, part.gradient, np.zeros(1), np.full(1, -np.inf))
        if gradient is None:
            return samples
        values = [samples.values(y, x) for y, x in product(*samples.coordinates())]
        least: Array = np.minimum.reduce([low for low, _ in values])
        most: Array = np.maximum.reduce([high for _, high in values])
        needed = value_of_first_greatest(least, block.used)
        candidates = block.used & (most >= needed)
        several = candidates.sum(axis=(1, 2), keepdims=True) > 1
        return replace(samples, in_doubt=np.where(candidates & several, gradient, 0), needed=needed)

    def values(self, y: Array, x: Array) -> tuple[Array, Array]:
        """Return the least and the greatest FLOAT32 values of samples at rows and columns.

        NaN becomes -infinity.
        """
        value: Array = np.fmax(self.reading.at(y, x), -np.inf)
        if not self.reading.linear:
            return value, value
        error = _INTERPOLATION_OPERATIONS * STEP * greatest(self.reading, y, x)
        return np.fmax(value - error, -np.inf), np.fmax(value + error, -np.inf)

    def certainly_added(self) -> Array:
        """Return which samples are certainly inside and certainly get their gradient."""
        corners = [self.reading.inside(y, x) for y, x in product(*self.coordinates())]
        added: Array = np.logical_and.reduce(corners) & (self.in_doubt == 0)
        return added

    def possible_gradient(self) -> Array:
        """Return the gradients that samples may get; 0 for samples that are certainly outside."""
        corners = [self.reading.inside(y, x) for y, x in product(*self.coordinates())]
        gradient = np.where(self.in_doubt == 0, self.gradient, self.in_doubt)
        return np.where(np.logical_or.reduce(corners), gradient, 0)

    def without_doubt(self) -> UncertainPart:
        """Return these samples without the gradients that are in doubt."""
        gradient = np.where(self.in_doubt == 0, self.gradient, 0)
        return replace(self, gradient=gradient, in_doubt=np.zeros(1))

    def may_be_chosen(self, y: Array, x: Array) -> Array:
        """Return which samples in doubt may be the first of the greatest at rows and columns."""
        chosen: Array = (self.in_doubt != 0) & (self.values(y, x)[1] >= self.needed)
        return chosen

    def coordinates(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return the rows and the columns at which values or slopes may be least or greatest."""
        block = self.block
        rows = coordinates_within(block.y, block.y_errors)
        return rows, coordinates_within(block.x, block.x_errors)

    def may_lie_beyond_an_element(self) -> Array:
        """Return which samples may lie on either side of an element; the last dimension is 1."""
        jumps = np.zeros(1, bool)
        for coordinates in self.coordinates():
            jumps = jumps | (np.floor(coordinates[0]) != np.floor(coordinates[-1]))
        return jumps[..., np.newaxis]

    def shares(self) -> Iterator[tuple[Array, Share]]:
        """Yield the indices of elements, with the channels last, and the elements' shares."""
        block, reading = self.block, self.reading
        height, width = reading.values.shape[1:3]
        rows = [*axis_shares(block.y, block.y_errors, height, linear=reading.linear)]
        columns = [*axis_shares(block.x, block.x_errors, width, linear=reading.linear)]
        for row, column in product(rows, columns):
            elements = elements_of(reading, row.index, column.index)
            read = self._may_be_read(row.index, column.index)
            share, least, most = (
                (of_row * of_column)[..., np.newaxis]
                for of_row, of_column in (
                    (row.share, column.share),
                    (row.least, column.least),
                    (row.most, column.most),
                )
            )
            yield elements, Share(elements, share, least, np.where(read, most, 0))

    def _may_be_read(self, row: Array, column: Array) -> Array:
        """Return which samples may read these elements; true with LINEAR, and if not in doubt."""
        if self.reading.linear:
            return np.ones(1, bool)
        read: Array = self.reading.elements(row, column) >= self.needed
        read |= self.in_doubt == 0
        return read


def slope_scales(reading: Reading, y: Array, x: Array) -> tuple[Array, Array]:
    """Return the error scales of slopes along x and along y.

    A slope is a weighted mean of two elements minus another such mean. Its error scale is the sum
    of both means for absolute values.
    """
    down, across = ((at - np.floor(at))[..., np.newaxis] for at in (y, x))
    sizes = [np.abs(element) for element in elements_around(reading, y, x)]
    top_left, top_right, bottom_left, bottom_right = sizes
    upper, lower = top_left + top_right, bottom_left + bottom_right
    left, right = top_left + bottom_left, top_right + bottom_right
    return upper * (1 - down) + lower * down, left * (1 - across) + right * across


def value_of_first_greatest(least: Array, used: Array) -> Array:
    """Return the least value with which each sample may be the first of its output's greatest.

    The value exceeds `least` of all earlier samples, and is not below `least` of later samples: if
    `least` is 3, 5 and 4, the values are 5, 4, and just above 5.

    Args:
        least: the least value that each sample may have, sizes {regions, samples, samples, rows,
            columns, channels}, like the result.
    """
    low = np.where(used, least, -np.inf).reshape(len(least), -1, *least.shape[3:])
    needed = np.full(low.shape, -np.inf)
    needed[:, 1:] = np.nextafter(np.maximum.accumulate(low, axis=1)[:, :-1], np.inf)
    later = np.maximum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    needed[:, :-1] = np.maximum(needed[:, :-1], later[:, 1:])
    return needed.reshape(least.shape)
