"""Samples of a tensor at coordinates within regions of interest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "COLUMNS",
    "ROWS",
    "Block",
    "Placement",
    "Reading",
    "Samples",
    "around",
    "channels_last",
    "of_samples",
    "output_sizes",
    "placed",
    "reduced",
    "sample_blocks",
    "slices",
]

_DOUBLE: Final = np.dtype(np.float64)

ROWS: Final = np.s_[:, :, np.newaxis, :, np.newaxis]
COLUMNS: Final = np.s_[:, np.newaxis, :, np.newaxis]
"""Indices that turn coordinates {regions, samples, outputs} into {regions, samples, 1, rows, 1} and
into {regions, 1, samples, 1, columns}, as in `Block`."""

_BLOCK: Final = 1 << 16
"""How many elements are computed at once: 512 KiB of FLOAT64 stay in the processor's cache."""

_MOST_SAMPLES: Final = 1 << 16
"""The most samples of an output along an axis; twice as many along both axes take minutes."""


@dataclass(frozen=True)
class Placement:
    """How samples lie along one axis: at `shares * (end - begin) + begin - shift`.

    Attributes:
        begin, end: where each region begins and ends, scaled, sizes {regions, 1, 1}.
        steps: the number of each sample in its region, minus `offset`, sizes {regions, samples,
            outputs}.
        length: how many steps there are from begin to end, sizes {regions, 1, 1}.
        shares: the steps divided by the length: 0 where the region begins, 1 where it ends; 1/2 if
            the length is 0.
        counts: how many samples an output has, sizes {regions}.
        shift, offset: InputPixelOffset and OutputPixelOffset.
    """

    begin: Array
    end: Array
    steps: Array
    length: Array
    shares: Array
    counts: Array
    shift: float
    offset: float

    @property
    def part(self) -> Array:
        """The distance of each sample from where its region begins."""
        part: Array = self.shares * (self.end - self.begin)
        return part

    def samples(self) -> Samples:
        """Return where the samples lie."""
        return Samples(self.part + self.begin - self.shift, self.counts)


@dataclass(frozen=True)
class Samples:
    """Where the samples of each output lie along one axis.

    Attributes:
        values: coordinates in the input, FLOAT64, sizes {regions, samples, outputs}.
        counts: how many samples an output has, sizes {regions}.
    """

    values: Array
    counts: Array

    def of(self, regions: slice, outputs: slice = slice(None)) -> Samples:
        """Return the samples of some regions and outputs, without padding that none needs."""
        counts = self.counts[regions]
        return Samples(self.values[regions, slice(counts.max(initial=1)), outputs], counts)

    def used(self) -> Array:
        """Return which samples exist and do not pad the array, sizes {regions, samples, 1}."""
        sample = np.arange(self.values.shape[1])[:, np.newaxis]
        return sample < self.counts[:, np.newaxis, np.newaxis]


@dataclass(frozen=True)
class Block:
    """All samples of some outputs.

    Attributes:
        outputs: the slices of regions, rows and columns.
        y, x: coordinates, sizes {regions, samples, 1, rows, 1} and {regions, 1, samples, 1,
            columns}.
        used: which samples exist and do not pad the arrays, sizes {regions, samples, samples, 1, 1,
            1}.
        counts: how many samples an output has, sizes {regions, 1, 1, 1}.
    """

    outputs: tuple[slice, slice, slice]
    y: Array
    x: Array
    used: Array
    counts: Array


@dataclass(frozen=True)
class Reading:
    """How a tensor is read.

    Methods take rows y and columns x, whose sizes broadcast together; samples and elements have the
    channels as a further dimension.

    Attributes:
        values: the tensor, FLOAT64, sizes {batches, height, width, channels}.
        batch: the index of the batch that is read; broadcasts with the coordinates.
        linear: whether to interpolate; if not, the nearest element is read, and half way between
            two elements the next one.
        outside: the value of samples outside the tensor.
        edges: whether the tensor ends at its outermost elements; if not, one element further out.
    """

    values: Array
    batch: Array
    linear: bool
    outside: float
    edges: bool

    def of(self, block: Block) -> Reading:
        """Return how the samples of a block are read; `batch` must have the sizes {regions}."""
        batch = self.batch[block.outputs[0]]
        return replace(self, batch=batch.reshape(-1, *(1,) * (block.y.ndim - 1)))

    def at(self, y: Array, x: Array) -> Array:
        """Return the samples at rows and columns: interpolated or nearest elements or `outside`."""
        inner = self._interpolated(y, x) if self.linear else self.nearest(y, x)
        samples: Array = np.where(self.inside(y, x), inner, self.outside)
        return samples

    def _interpolated(self, y: Array, x: Array) -> Array:
        rows, columns = self.values.shape[1:3]
        y, x = np.clip(y, 0, rows - 1), np.clip(x, 0, columns - 1)
        (top, bottom), (left, right) = around(y), around(x)
        down, across = (y - top)[..., np.newaxis], (x - left)[..., np.newaxis]
        upper, lower = (self._between(row, left, right, across) for row in (top, bottom))
        lower -= upper
        lower *= down
        lower += upper
        return lower

    def _between(self, row: Array, left: Array, right: Array, across: Array) -> Array:
        first, result = self.elements(row, left), self.elements(row, right)
        result -= first
        result *= across
        result += first
        return result

    def elements(self, y: Array, x: Array) -> Array:
        """Return the elements at whole coordinates; beyond an edge, the elements at the edge."""
        elements: Array = self.values.reshape(-1, self.values.shape[-1]).take(self.indices(y, x), 0)
        return elements

    def indices(self, y: Array, x: Array) -> Array:
        """Return flat indices, not counting channels, of the elements at whole coordinates."""
        height, width = self.values.shape[1:3]
        row, column = (
            np.fmin(np.fmax(at, 0), size - 1).astype(np.intp)
            for at, size in ((y, height), (x, width))
        )
        index: Array = (self.batch * height + row) * width + column
        return index

    def nearest(self, y: Array, x: Array) -> Array:
        """Return the elements nearest to rows and columns."""
        return self.elements(np.floor(y + 0.5), np.floor(x + 0.5))

    def inside(self, y: Array, x: Array) -> Array:
        """Return which rows and columns are inside, for all channels."""
        rows, columns = self.within(y, 1), self.within(x, 2)
        return (rows & columns)[..., np.newaxis]

    def is_point(self, axis: int) -> bool:
        """Return whether 0 is the only coordinate inside along axis 1 (rows) or 2 (columns)."""
        return self.edges and self.values.shape[axis] == 1

    def within(self, at: Array, axis: int) -> Array:
        """Return which coordinates along axis 1 (rows) or 2 (columns) are inside or NaN."""
        size = self.values.shape[axis]
        inside: Array = ~((at < 0) | (at > size - 1) if self.edges else (at <= -1) | (at >= size))
        return inside


def placed(
    ends: Array,
    scale: float,
    outputs: int,
    counts: tuple[int, int],
    offsets: tuple[float, float],
    *,
    corners: bool,
) -> Placement:
    """Return how the samples of regions lie along an axis.

    Args:
        ends: where each region begins and ends, not yet scaled, sizes {regions, 2}.
        scale: the factor of `ends`.
        outputs: how many outputs each region has along the axis.
        counts: the least and the greatest number of samples of an output.
        offsets: InputPixelOffset and OutputPixelOffset.
        corners: whether, without offsets, the first and the last sample of a region lie at its ends
            and a single sample in the middle.

    Raises:
        MemoryError: an output has more samples along the axis than are computed.
    """
    factor, shift, offset = map(single, (scale, *offsets))
    begin, end = ends.T.astype(np.float64) * factor
    lengths = np.abs(end - begin).astype(np.float32) / np.float32(outputs)
    whole = np.nan_to_num(np.ceil(lengths)).astype(np.float64)
    number = np.clip(whole, *counts).astype(np.int64)
    most = number.max(initial=0)
    if most > _MOST_SAMPLES:
        raise MemoryError(
            f"an output has {most:,} samples along an axis; the reference computes at most 65,536"
        )
    steps = np.arange(outputs) * number[:, np.newaxis, np.newaxis]
    steps = steps + np.arange(most)[:, np.newaxis] - offset
    length = (outputs * number - int(corners))[:, np.newaxis, np.newaxis]
    shares = np.where(length == 0, 0.5, steps / np.maximum(length, 1))
    begin, end = (one[:, np.newaxis, np.newaxis] for one in (begin, end))
    return Placement(begin, end, steps, length, shares, number, shift, offset)


def reduced(reading: Reading, y: Samples, x: Samples, function: str) -> Array:
    """Return the mean of each output's samples for AVERAGE, else the greatest sample, FLOAT64.

    The sizes are {regions, rows, columns, channels}. The greatest of NaN and numbers is a number,
    and of NaN alone negative infinity.
    """
    result = np.empty(output_sizes(reading, y, x))
    for block in sample_blocks(y, x, result.shape[-1]):
        samples = reading.of(block).at(block.y, block.x)
        result[block.outputs] = of_samples(samples, block, function)
    return result


def of_samples(samples: Array, block: Block, function: str) -> Array:
    """Return the mean or the greatest of each output's samples in a block, as `reduced` does."""
    mean = function == "AVERAGE"
    if not block.used.all():
        samples = np.where(block.used, samples, 0.0 if mean else -np.inf)
    if mean:
        samples = np.add.reduce(samples, axis=(1, 2)) / block.counts
    else:
        samples = np.fmax.reduce(samples, axis=(1, 2), initial=-np.inf)
    return samples


def sample_blocks(y: Samples, x: Samples, channels: int) -> Iterator[Block]:
    """Yield the samples of all outputs in blocks, small enough for the processor's cache."""
    rows, columns = y.values.shape[-1], x.values.shape[-1]
    samples_of_each = y.values.shape[1] * x.values.shape[1]
    for regions in slices(len(y.counts), rows * columns * samples_of_each * channels):
        each = int(y.counts[regions].max() * x.counts[regions].max()) * channels
        for row in slices(rows, columns * each):
            for column in slices(columns, each):
                part = regions, row, column
                yield _block(part, y.of(regions, row), x.of(regions, column))


def _block(outputs: tuple[slice, slice, slice], y: Samples, x: Samples) -> Block:
    down, across = ROWS, COLUMNS
    used = y.used()[down] & x.used()[across]
    counts = (y.counts * x.counts)[:, np.newaxis, np.newaxis, np.newaxis]
    return Block(outputs, y.values[down], x.values[across], used[..., np.newaxis], counts)


def slices(count: int, size: int) -> Iterator[slice]:
    """Yield slices that cover `count` items of `size` elements each.

    A slice has at most 65,536 elements, or one item.
    """
    step = max(1, _BLOCK // size)
    for first in range(0, count, step):
        yield slice(first, first + step)


def output_sizes(reading: Reading, y: Samples, x: Samples) -> tuple[int, int, int, int]:
    """Return how many regions, rows, columns and channels there are."""
    return len(y.counts), y.values.shape[-1], x.values.shape[-1], reading.values.shape[-1]


def channels_last(tensor: Array, dtype: np.dtype[Any] = _DOUBLE) -> Array:
    """Return a tensor {batches, channels, ...} as {batches, ..., channels}, of the type `dtype`."""
    return np.moveaxis(tensor, 1, -1).astype(dtype, order="C")


def around(at: Array) -> tuple[Array, Array]:
    """Return the whole coordinate at or before each coordinate, and the next one."""
    before = np.floor(at)
    return before, before + 1
