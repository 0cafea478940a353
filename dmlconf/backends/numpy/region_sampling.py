"""Samples of a tensor at coordinates within regions of interest.

Coordinates and weights are computed in FLOAT64. Kernels compute them in FLOAT32, so each coordinate
comes with a bound of what it may be off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.backends.numpy.floats import single
from dmlconf.backends.numpy.rounding import STEP
from dmlconf.tensors.datatypes import Array

__all__ = [
    "Reading",
    "Samples",
    "around",
    "blocks",
    "channels_last",
    "possible_shifts",
    "reduced",
    "reduced_ends",
    "sample_counts",
    "sample_places",
    "samples",
    "special_outputs",
]

_DOUBLE: Final = np.dtype(np.float64)

_BLOCK: Final = 1 << 16
"""Elements that are computed at once."""

_ROUNDINGS: Final = 6
"""FLOAT32 operations of a coordinate: two products, a quotient, a product and two sums."""

_INTERPOLATION: Final = 6
"""FLOAT32 operations of an interpolation: a difference, a product and a sum along each axis."""


_QUARTER: Final = float(np.finfo(np.float32).max) / 4


@dataclass(frozen=True)
class Samples:
    """Where the samples of each output lie along one axis.

    Attributes:
        values: coordinates in the input, FLOAT64, sizes {regions, outputs, samples}.
        errors: how far FLOAT32 arithmetic may be off, as many; 0 where it rounds nothing.
        counts: how many samples an output has, sizes {regions}.
    """

    values: Array
    errors: Array
    counts: Array

    def of(self, regions: slice) -> Samples:
        """Return the samples of some regions, as many as the one with the most has."""
        counts = self.counts[regions]
        used = regions, slice(None), slice(counts.max(initial=1))
        return Samples(self.values[used], self.errors[used], counts)


@dataclass(frozen=True)
class Reading:
    """How a tensor is read.

    Attributes:
        values: the tensor, FLOAT64, sizes {batches, height, width, channels}.
        batch: which batch each region reads.
        linear: whether to interpolate; else the nearest element is read, at halves the next one.
        outside: what is read outside.
        edges: whether the outermost elements are the edges; else these are one element further.
    """

    values: Array
    batch: Array
    linear: bool
    outside: float
    edges: bool

    def of(self, regions: slice) -> Reading:
        """Return how some regions read the tensor."""
        return replace(self, batch=self.batch[regions])

    def at(self, y: Array, x: Array) -> Array:
        """Return what is at rows and columns, sizes {regions, rows, columns, channels}.

        Args:
            y: coordinates, sizes {regions, rows}.
            x: coordinates, sizes {regions, columns}.
        """
        found = self._interpolated(y, x) if self.linear else self.nearest(y, x)
        seen: Array = np.where(self.inside(y, x), found, self.outside)
        return seen

    def greatest(self, y: Array, x: Array) -> Array:
        """Return the greatest absolute value that `at` makes its results of."""
        if not self.linear:
            return np.abs(self.at(y, x))
        near = [np.abs(self.elements(*at)) for at in product(around(y), around(x))]
        seen: Array = np.where(self.inside(y, x), np.maximum.reduce(near), abs(self.outside))
        return seen

    def _interpolated(self, y: Array, x: Array) -> Array:
        rows, columns = self.values.shape[1:3]
        y, x = np.clip(y, 0, rows - 1), np.clip(x, 0, columns - 1)
        (top, bottom), (left, right) = around(y), around(x)
        down, across = (
            (y - top)[:, :, np.newaxis, np.newaxis],
            (x - left)[:, np.newaxis, :, np.newaxis],
        )
        upper, lower = (
            first + across * (self.elements(row, right) - first)
            for row, first in ((row, self.elements(row, left)) for row in (top, bottom))
        )
        between: Array = upper + down * (lower - upper)
        return between

    def elements(self, y: Array, x: Array) -> Array:
        """Return the elements at whole coordinates; edges go on beyond their end."""
        rows, columns = (
            np.fmin(np.fmax(at, 0), size - 1).astype(np.intp)
            for at, size in zip((y, x), self.values.shape[1:3], strict=True)
        )
        batch = self.batch[:, np.newaxis, np.newaxis]
        found: Array = self.values[batch, rows[:, :, np.newaxis], columns[:, np.newaxis]]
        return found

    def special(self) -> Reading | None:
        """Return where infinity, NaN or what overflows when added is at most one element away.

        The reading gives 1 there and 0 elsewhere; None where there is nothing such.
        """
        marked = ~(np.abs(self.values) <= _QUARTER)
        if not marked.any():
            return None
        for axis in (1, 2):
            last = marked.shape[axis] - 1
            places = (np.clip(np.arange(last + 1) + step, 0, last) for step in (-1, 0, 1))
            marked = np.logical_or.reduce([marked.take(place, axis) for place in places])
        return Reading(marked.astype(np.float64), self.batch, False, 0.0, self.edges)

    def nearest(self, y: Array, x: Array) -> Array:
        """Return the elements nearest to rows and columns, sizes as of `at`."""
        return self.elements(np.floor(y + 0.5), np.floor(x + 0.5))

    def inside(self, y: Array, x: Array) -> Array:
        """Tell which rows and columns are inside, sizes {regions, rows, columns, 1}."""
        rows, columns = (
            ~((at < 0) | (at > size - 1) if self.edges else (at <= -1) | (at >= size))
            for at, size in zip((y, x), self.values.shape[1:3], strict=True)
        )
        inside: Array = rows[:, :, np.newaxis] & columns[:, np.newaxis]
        return inside[..., np.newaxis]


def samples(
    ends: Array,
    scale: float,
    outputs: int,
    counts: tuple[int, int],
    offsets: tuple[float, float],
    *,
    corners: bool,
) -> Samples:
    """Return where along an axis the samples of regions lie.

    Args:
        ends: where each region begins and ends, sizes {regions, 2}.
        scale: what these are multiplied with.
        outputs: how many outputs each region has.
        counts: the least and the greatest number of samples of an output.
        offsets: of the input's pixels and of the output's.
        corners: whether samples reach from one end to the other; a single one is in the middle.
    """
    factor, shift, offset = map(single, (scale, *offsets))
    begin, end = ends.T.astype(np.float64) * factor
    extent = end - begin
    lengths = np.abs(extent).astype(np.float32) / np.float32(outputs)
    number = np.clip(np.nan_to_num(np.ceil(lengths)), *counts).astype(np.int64)
    steps = np.arange(outputs)[:, np.newaxis] * number[:, np.newaxis, np.newaxis]
    steps = steps + np.arange(number.max(initial=0)) - offset
    length = (outputs * number - int(corners))[:, np.newaxis, np.newaxis]
    shares = np.where(length == 0, 0.5, steps / np.maximum(length, 1))
    begin, end, extent = (one[:, np.newaxis, np.newaxis] for one in (begin, end, extent))
    values = shares * extent + begin - shift
    errors = (np.abs(shares * extent) + np.abs(begin) + np.abs(end) + abs(shift)) * (
        _ROUNDINGS * STEP
    )
    whole = np.frexp(np.maximum(length, 1))[0] == 0.5
    for exact in (begin, end, extent, steps, shares * extent, values + shift, values):
        whole = whole & (exact.astype(np.float32) == exact)
    return Samples(values, np.where(whole, 0, errors), number)


def reduced(reading: Reading, y: Samples, x: Samples, function: str) -> Array:
    """Return the mean or the greatest of each output's samples, FLOAT64.

    Sizes {regions, rows, columns, channels}. The greatest passes over NaN, and is at least the
    lowest finite number.
    """
    result = np.empty((*y.values.shape[:2], x.values.shape[1], reading.values.shape[-1]))
    for regions in blocks(result.shape):
        read, rows, columns = reading.of(regions), y.of(regions), x.of(regions)
        found = _Reduction(function)
        for used, row, column in sample_places(rows, columns):
            found.add(read.at(rows.values[..., row], columns.values[..., column]), used)
        result[regions] = found.result(rows, columns)
    return result


def reduced_ends(
    reading: Reading, y: Samples, x: Samples, function: str
) -> tuple[Array, Array, Array]:
    """Return the least and the greatest that `reduced` may give, and the error of its arithmetic.

    A coordinate may lie beyond the next boundary where that is nearer than its error. The error is
    infinite where FLOAT32 arithmetic may overflow on the way.
    """
    sizes = *y.values.shape[:2], x.values.shape[1], reading.values.shape[-1]
    least, most, error = np.empty(sizes), np.empty(sizes), np.empty(sizes)
    for regions in blocks(sizes):
        of_regions = reading.of(regions), y.of(regions), x.of(regions)
        least[regions], most[regions], error[regions] = _ends(*of_regions, function)
    return least, most, error


def _ends(reading: Reading, y: Samples, x: Samples, function: str) -> tuple[Array, Array, Array]:
    least, most, largest = (_Reduction(function) for _ in range(3))
    for used, row, column in sample_places(y, x):
        rows, columns = y.values[..., row], x.values[..., column]
        shifts = product(
            possible_shifts(y.errors[..., row]), possible_shifts(x.errors[..., column])
        )
        found = [reading.at(rows + down, columns + across) for down, across in shifts]
        least.add(np.minimum.reduce(found), used)
        most.add(np.maximum.reduce(found), used)
        largest.add(reading.greatest(rows, columns), used)
    totals = sample_counts(y, x) if function == "AVERAGE" else 1
    operations = totals - 1 + (_INTERPOLATION if reading.linear else 0)
    magnitude = largest.result(y, x)
    beyond = magnitude * np.maximum(totals, 2 if reading.linear else 1) > np.finfo(np.float32).max
    error = np.where(beyond, np.inf, magnitude * (operations * STEP))
    return least.result(y, x), most.result(y, x), error


def special_outputs(reading: Reading, y: Samples, x: Samples) -> Array | bool:
    """Tell which outputs have samples of which special numbers may be a part.

    Interpolation may multiply such a number by a weight of 0 or pass over it, and where they read
    single elements, so may samples whose coordinate is not certain, and sums of several.
    """
    special = reading.special()
    if special is None:
        return False
    found: Array = np.zeros((1, 1, 1, 1))
    for used, row, column in sample_places(y, x):
        seen = special.nearest(y.values[..., row], x.values[..., column])
        uncertain = y.errors[..., row][:, :, np.newaxis] + x.errors[..., column][:, np.newaxis]
        weight = 2.0 if reading.linear else np.where(uncertain > 0, 2.0, 1.0)[..., np.newaxis]
        found = found + used * seen * weight
    return found > 1


def blocks(sizes: Sequence[int]) -> Iterator[slice]:
    """Yield regions of which a tensor that begins with them stays in the processor's cache."""
    step = max(1, _BLOCK * sizes[0] // prod(sizes))
    for first in range(0, sizes[0], step):
        yield slice(first, first + step)


class _Reduction:
    """Adds up samples, or finds the greatest."""

    def __init__(self, function: str) -> None:
        self._neutral, self._combine = _FUNCTIONS[function]
        self._mean = function == "AVERAGE"
        self._found: Array | None = None

    def add(self, values: Array, used: Array) -> None:
        """Take a sample of each output of the regions that have so many."""
        values = np.where(used, values, self._neutral)
        self._found = self._combine(self._neutral if self._found is None else self._found, values)

    def result(self, y: Samples, x: Samples) -> Array:
        """Return what came out."""
        assert self._found is not None
        return self._found / sample_counts(y, x) if self._mean else self._found


_FUNCTIONS: Final[Mapping[str, tuple[float, np.ufunc]]] = {
    "AVERAGE": (0.0, np.add),
    "MAX": (-np.inf, np.fmax),
}


def sample_places(y: Samples, x: Samples) -> Iterator[tuple[Array, int, int]]:
    """Yield each pair of samples of an output, and which regions have so many."""
    for row, column in product(range(y.values.shape[-1]), range(x.values.shape[-1])):
        used = (row < y.counts) & (column < x.counts)
        yield used[:, np.newaxis, np.newaxis, np.newaxis], row, column


def sample_counts(y: Samples, x: Samples) -> Array:
    """Return how many samples the outputs of each region have, sizes {regions, 1, 1, 1}."""
    return (y.counts * x.counts)[:, np.newaxis, np.newaxis, np.newaxis]


def possible_shifts(errors: Array) -> tuple[Array, ...]:
    """Return by how much coordinates may be off, zero the last."""
    return (errors, -errors, np.zeros_like(errors)) if errors.any() else (errors,)


def channels_last(tensor: Array, dtype: np.dtype[Any] = _DOUBLE) -> Array:
    """Return the tensor with all channels of an element side by side, as they are read together."""
    return np.moveaxis(tensor, 1, -1).astype(dtype, order="C")


def around(at: Array) -> tuple[Array, Array]:
    """Return the whole coordinates before and behind."""
    before = np.floor(at)
    return before, before + 1
