"""Samples whose coordinates are not certain, since kernels compute them in FLOAT32.

Source: Direct3D 11.3 functional specification, 3.1: each operation rounds up or down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.reference.regions.sampling import (
    COLUMNS,
    ROWS,
    Block,
    Placement,
    Reading,
    Samples,
    around,
    output_sizes,
    sample_blocks,
)
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_SUBNORMAL_FLOAT32

__all__ = [
    "UncertainBlock",
    "UncertainSamples",
    "adrift",
    "greatest",
    "may_be_passed_over",
    "special",
    "special_outputs",
    "uncertain",
    "uncertain_block",
    "uncertain_blocks",
    "unsure",
]

_DIFFERENCE: Final = 2
"""FLOAT32 operations that compute an extent: a difference, and the product with a scale."""

_DIVISIONS: Final = 4
"""FLOAT32 operations that divide by the number of outputs and by that of samples: a reciprocal and
a product each."""

_NUMBER_OPERATIONS: Final = 2
"""FLOAT32 operations that round the number of a sample: a quotient, and the sum with an offset."""

_ADRIFT: Final = 0.5
"""The error of a coordinate, in elements, above which any result is right."""

_QUARTER: Final = LARGEST_FLOAT32 / 4
"""The sum of four numbers up to this is finite."""


@dataclass(frozen=True)
class UncertainSamples(Samples):
    """The coordinates of samples, and their greatest errors.

    Attributes:
        errors: the greatest errors of the coordinates in FLOAT32, of the same sizes.
        undefined: which regions have a begin, an end or an extent that is beyond FLOAT32 or NaN, or
            a shift or an offset that is not finite; sizes {regions}.
    """

    errors: Array = field(kw_only=True)
    undefined: Array = field(kw_only=True)

    def of(self, regions: slice, outputs: slice = slice(None)) -> UncertainSamples:
        """Return the samples of some regions and outputs.

        The dimension of samples is cut to the most samples that an output has in these regions.
        """
        counts = self.counts[regions]
        part = regions, slice(counts.max(initial=1)), outputs
        undefined = self.undefined[regions]
        return UncertainSamples(
            self.values[part], counts, errors=self.errors[part], undefined=undefined
        )


@dataclass(frozen=True)
class UncertainBlock(Block):
    """All samples of some outputs, with the greatest errors of y and x."""

    y_errors: Array = field(kw_only=True)
    x_errors: Array = field(kw_only=True)


def uncertain(at: Placement) -> UncertainSamples:
    """Return the coordinates of samples, and their greatest errors in FLOAT32."""
    begin, end, steps, part = at.begin, at.end, at.steps, at.part
    extent, values = end - begin, part + begin - at.shift
    exactly_divided = np.frexp(np.maximum(at.length, 1))[0] == 0.5
    operations = (
        _DIFFERENCE * _inexact(extent) + _inexact(steps) + _DIVISIONS * ~exactly_divided + 1
    )
    sums = np.maximum(
        np.abs(part + begin), np.maximum(np.abs(begin - at.shift), np.abs(part - at.shift))
    )
    errors = operations * np.abs(part) + sums + np.abs(values)
    for each, weight in ((begin, 1 + np.abs(at.shares)), (end, np.abs(at.shares))):
        errors += _inexact(each) * np.abs(each) * weight
    whole = exactly_divided
    for step in (begin, end, extent, steps, part, part + begin, values):
        whole = whole & ~_inexact(step)
    # A kernel may subtract the shift first.
    for step in (begin, part):
        whole = whole & ~_rounds_difference(step, at.shift)
    sizes = np.maximum.reduce([np.abs(each) for each in (begin, end, extent)])
    finite = sizes[:, 0, 0] <= np.finfo(np.float32).max
    finite &= math.isfinite(at.shift) and math.isfinite(at.offset)
    errors = np.where(
        whole | (errors == 0), 0, errors * STEP + operations * LEAST_SUBNORMAL_FLOAT32
    )
    return UncertainSamples(values, at.counts, errors=errors, undefined=~finite)


def may_be_passed_over(
    samples: UncertainSamples, at: Placement, *, linear: bool
) -> UncertainSamples:
    """Return samples whose errors say where a kernel may not find them around an element.

    A gradient's kernel computes for each element the first and the last number of the samples that
    are less than an element away. In FLOAT32 that number may be off by `_NUMBER_OPERATIONS`
    roundings of its size, so a sample is lost that is nearer than as many of its steps to the end
    of an element's reach.

    Args:
        samples: the samples with the errors of their coordinates.
        at: how they lie along the axis.
        linear: whether an element reaches to its neighbours, not to the middle between them.
    """
    number = np.abs(at.steps + at.offset)
    step = np.abs(at.end - at.begin) / np.maximum(at.length, 1)
    number_error = _NUMBER_OPERATIONS * STEP * np.maximum(number, abs(at.offset)) * step
    ends = samples.values if linear else samples.values + 0.5
    after = ends - np.floor(ends)
    nearest = np.where(after == 0, 1, np.minimum(after, 1 - after))
    errors = np.where(
        number_error >= nearest, np.maximum(samples.errors, number_error), samples.errors
    )
    return replace(samples, errors=errors)


def _inexact(values: Array) -> Array:
    rounded: Array = values.astype(np.float32) != values
    return rounded


def _rounds_difference(values: Array, subtracted: float) -> Array:
    """Return where FLOAT32 rounds a difference, even if FLOAT64 rounds it to a FLOAT32 number."""
    difference = values - subtracted
    lost: Array = (difference + subtracted != values) | (values - difference != subtracted)
    return lost | _inexact(difference)


def uncertain_blocks(
    y: UncertainSamples, x: UncertainSamples, channels: int
) -> Iterator[UncertainBlock]:
    """Yield the samples of all outputs in blocks, as `sample_blocks` does, with their errors."""
    for block in sample_blocks(y, x, channels):
        yield uncertain_block(block, y, x)


def uncertain_block(block: Block, y: UncertainSamples, x: UncertainSamples) -> UncertainBlock:
    """Return a block with the errors of its coordinates."""
    regions, rows, columns = block.outputs
    return UncertainBlock(
        block.outputs,
        block.y,
        block.x,
        block.used,
        block.counts,
        y_errors=y.of(regions, rows).errors[ROWS],
        x_errors=x.of(regions, columns).errors[COLUMNS],
    )


def greatest(reading: Reading, y: Array, x: Array) -> Array:
    """Return the greatest absolute value of the numbers from which `Reading.at` is computed."""
    if not reading.linear:
        return np.abs(reading.at(y, x))
    near = [np.abs(reading.elements(*at)) for at in product(around(y), around(x))]
    samples: Array = np.where(reading.inside(y, x), np.maximum.reduce(near), abs(reading.outside))
    return samples


def special(reading: Reading) -> Reading | None:
    """Return a reading of 1 at special elements and their neighbours, and of 0 at all others.

    Special are infinity, NaN, and numbers so large that a sum of four may overflow. None if no
    element is special.
    """
    marked = ~(np.abs(reading.values) <= _QUARTER)
    if not marked.any():
        return None
    for axis in (1, 2):
        last = marked.shape[axis] - 1
        indices = (np.clip(np.arange(last + 1) + step, 0, last) for step in (-1, 0, 1))
        marked = np.logical_or.reduce([marked.take(index, axis) for index in indices])
    return Reading(marked.astype(np.float64), reading.batch, False, 0.0, reading.edges)


def unsure(reading: Reading, at: UncertainSamples, axis: int) -> Array:
    """Return which samples along one axis are nearer to a boundary than the coordinate's error.

    A boundary is an edge of the tensor and, where the nearest element is read, the middle between
    two elements.
    """
    ends = at.values - at.errors, at.values + at.errors
    last = reading.values.shape[axis] - 1
    between = np.clip(np.clip(at.values, 0, last), *ends)
    below, inside, above = (reading.within(end, axis) for end in (ends[0], between, ends[1]))
    unsure: Array = (below != inside) | (inside != above)
    if not reading.linear:
        unsure |= np.not_equal(*(np.clip(np.floor(end + 0.5), 0, last) for end in ends))
    return unsure & at.used()


def adrift(reading: Reading, at: UncertainSamples, axis: int) -> Array:
    """Return which outputs have a sample that may be in the tensor, with an error above _ADRIFT."""
    size = reading.values.shape[axis]
    near = (at.values + at.errors >= -1) & (at.values - at.errors <= size)
    outputs: Array = ((at.errors > _ADRIFT) & near & at.used()).any(axis=1)
    return outputs


def special_outputs(reading: Reading, y: UncertainSamples, x: UncertainSamples) -> Array:
    """Return which outputs a special number may affect in only some kernels.

    A kernel may multiply a special number by a weight of 0, or skip it. A sample with an uncertain
    coordinate may read another element. The sum of several special numbers depends on their order.
    """
    marked = special(reading)
    outputs = np.zeros(output_sizes(reading, y, x), bool)
    if marked is None:
        return outputs
    for block in uncertain_blocks(y, x, outputs.shape[-1]):
        samples = marked.of(block).nearest(block.y, block.x)
        uncertain = (block.y_errors + block.x_errors)[..., np.newaxis] > 0
        weight = 2.0 if reading.linear else np.where(uncertain, 2.0, 1.0)
        outputs[block.outputs] = (block.used * samples * weight).sum(axis=(1, 2)) > 1
    return outputs
