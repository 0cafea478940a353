"""The samples of some outputs with what they have of the outputs' gradients.

Source: the page of DML_ROI_ALIGN_GRAD_OPERATOR_DESC; measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dmlconf.reference.regions.sampling import Block, Reading, around
from dmlconf.reference.regions.shares import Share, axis_shares, coordinates_within
from dmlconf.tensors.datatypes import Array

__all__ = ["Part", "elements_of", "first_greatest", "touched"]


@dataclass(frozen=True)
class Part:
    """The samples of some outputs, with their shares of the gradients.

    Attributes:
        block: where they lie.
        reading: how they read the tensor.
        gradient: what each has of the outputs' gradients, even if it is outside, sizes {regions,
            samples, samples, rows, columns, channels}.
    """

    block: Block
    reading: Reading
    gradient: Array

    def inner_gradient(self) -> Array:
        """Return what the samples inside have of the outputs' gradients."""
        return np.where(self.reading.inside(self.block.y, self.block.x), self.gradient, 0)

    def certainly_inside(self) -> Array:
        """Return which samples are inside, however far off their coordinates are."""
        corners = [self.reading.inside(y, x) for y, x in product(*self._ends())]
        inside: Array = np.logical_and.reduce(corners)
        return inside

    def possible_gradient(self) -> Array:
        """Return what the samples have of the outputs' gradients that are inside or may be so."""
        corners = [self.reading.inside(y, x) for y, x in product(*self._ends())]
        return np.where(np.logical_or.reduce(corners), self.gradient, 0)

    def _ends(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return the rows and the columns where samples may lie at most, and where they do."""
        block = self.block
        rows = block.y - block.y_errors, block.y, block.y + block.y_errors
        columns = block.x - block.x_errors, block.x, block.x + block.x_errors
        return rows, columns

    def coordinates(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return rows and columns among which slopes have their least and greatest values."""
        block = self.block
        rows = coordinates_within(block.y, block.y_errors)
        return rows, coordinates_within(block.x, block.x_errors)

    def may_lie_beyond_an_element(self) -> Array:
        """Return which samples have an element within the error of a coordinate; channels last."""
        jumps = np.zeros(1, bool)
        for before, _, behind in self._ends():
            jumps = jumps | (np.floor(before) != np.floor(behind))
        return jumps[..., np.newaxis]

    def shares(self) -> Iterator[tuple[Array, Share]]:
        """Yield the indices of elements of all channels, and their shares of the gradients.

        Shares have a last dimension for the channels.
        """
        block, reading = self.block, self.reading
        height, width = reading.values.shape[1:3]
        rows = [*axis_shares(block.y, block.y_errors, height, linear=reading.linear)]
        columns = [*axis_shares(block.x, block.x_errors, width, linear=reading.linear)]
        for row, column in product(rows, columns):
            place = elements_of(reading, row.place, column.place)
            share, least, most = (
                (of_row * of_column)[..., np.newaxis]
                for of_row, of_column in (
                    (row.share, column.share),
                    (row.least, column.least),
                    (row.most, column.most),
                )
            )
            yield place, Share(place, share, least, most)


def first_greatest(samples: Array, used: Array) -> Array:
    """Return which sample of each output is the first of the greatest."""
    comparable = np.where(used & ~np.isnan(samples), samples, -np.inf)
    in_turn = comparable.reshape(len(samples), -1, *samples.shape[3:])
    first = in_turn.argmax(axis=1)[:, np.newaxis]
    place = np.arange(in_turn.shape[1])[:, np.newaxis, np.newaxis, np.newaxis]
    chosen: Array = (place == first).reshape(samples.shape)
    return chosen


def touched(reading: Reading, y: Array, x: Array) -> Iterator[tuple[Array, Array, Array | float]]:
    """Yield the rows and columns of what samples are made of, and their shares."""
    if not reading.linear:
        yield np.floor(y + 0.5), np.floor(x + 0.5), 1.0
        return
    height, width = reading.values.shape[1:3]
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    for row, column in product(around(y), around(x)):
        share = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        yield row, column, share[..., np.newaxis]


def elements_of(reading: Reading, row: Array, column: Array) -> Array:
    """Return the indices of the elements at rows and columns, of all channels."""
    channels = reading.values.shape[-1]
    first = reading.places(row, column)[..., np.newaxis] * channels
    indices: Array = first + np.arange(channels)
    return indices
