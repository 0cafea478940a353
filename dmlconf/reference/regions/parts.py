"""The samples of some outputs of ROI_ALIGN, with the gradients that they get and pass on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dmlconf.reference.regions.sampling import Block, Reading, around
from dmlconf.tensors.datatypes import Array

__all__ = ["Part", "elements_of", "first_greatest", "touched"]


@dataclass(frozen=True)
class Part:
    """The samples of some outputs, with their shares of the outputs' gradients.

    Attributes:
        gradient: the shares, also of samples outside the tensor; sizes {regions, samples, samples,
            rows, columns, channels}.
    """

    block: Block
    reading: Reading
    gradient: Array

    def inner_gradient(self) -> Array:
        """Return `gradient` with 0 for samples outside the tensor."""
        return np.where(self.reading.inside(self.block.y, self.block.x), self.gradient, 0)


def first_greatest(samples: Array, used: Array) -> Array:
    """Return which sample of each output is the first of the greatest; NaN counts as -infinity.

    Args:
        samples: sizes {regions, samples, samples, rows, columns, channels}, as has the result.
        used: see `Block`.
    """
    comparable = np.where(used & ~np.isnan(samples), samples, -np.inf)
    in_turn = comparable.reshape(len(samples), -1, *samples.shape[3:])
    first = in_turn.argmax(axis=1)[:, np.newaxis]
    number = np.arange(in_turn.shape[1])[:, np.newaxis, np.newaxis, np.newaxis]
    chosen: Array = (number == first).reshape(samples.shape)
    return chosen


def touched(reading: Reading, y: Array, x: Array) -> Iterator[tuple[Array, Array, Array | float]]:
    """Yield rows, columns and weights of the elements that make up samples.

    These are the four around a sample or, without interpolation, the nearest one. Rows and columns
    may lie beyond the edge.
    """
    if not reading.linear:
        yield np.floor(y + 0.5), np.floor(x + 0.5), 1.0
        return
    height, width = reading.values.shape[1:3]
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    for row, column in product(around(y), around(x)):
        share = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        yield row, column, share[..., np.newaxis]


def elements_of(reading: Reading, row: Array, column: Array) -> Array:
    """Return the flat indices in `reading.values` of all channels at rows and columns.

    Rows and columns beyond the edge count as the edge.
    """
    channels = reading.values.shape[-1]
    first = reading.indices(row, column)[..., np.newaxis] * channels
    indices: Array = first + np.arange(channels)
    return indices
