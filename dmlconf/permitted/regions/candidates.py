"""Permitted outputs of ROI_ALIGN if rounding decides on which side of a boundary a sample lies.

A sample is unsure if it is nearer to a boundary (`sampling.unsure`) than the error of its
coordinate. Each candidate has one choice of sides for the unsure samples.

Source: Direct3D 11.3 functional specification, 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.permitted.regions.sampling import (
    UncertainBlock,
    UncertainSamples,
    greatest,
    uncertain_blocks,
    unsure,
)
from dmlconf.permitted.regions.shares import coordinates_within
from dmlconf.reference.regions.sampling import Reading, of_samples, output_sizes
from dmlconf.tensors.datatypes import Array

__all__ = ["Candidate", "reduced_candidates"]

_INTERPOLATION: Final = 6
"""FLOAT32 operations of an interpolation: a difference, a product and a sum for each axis."""

_MOST_UNSURE: Final = 3
"""The most unsure samples of an output along an axis that are tried on both sides."""

_MOST_ELEMENTS: Final = 1 << 27
"""The most elements of all candidates together."""


@dataclass(frozen=True)
class Candidate:
    """The results for one choice of sides, FLOAT64, sizes {regions, rows, columns, channels}.

    Attributes:
        least, most: the least and the greatest result before FLOAT32 rounds anything.
        error: how far arithmetic may be off; infinite where an intermediate may overflow.
    """

    least: Array
    most: Array
    error: Array


@dataclass(frozen=True)
class _Side:
    """A choice of sides for the unsure samples along an axis.

    Attributes:
        unsure: which samples are unsure, sizes {regions, samples, outputs}.
        choice: bit i is 1 if unsure sample i of an output lies above its boundary, else 0.
        point: whether 0 is the only coordinate inside the input. A sample with the bit 1 is then
            moved to exactly 0, since any step beyond would leave the input.
    """

    unsure: Array
    choice: int
    point: bool

    def shifts(self, at: UncertainSamples) -> Array:
        """Return the distances by which the unsure samples are moved."""
        number = np.cumsum(self.unsure, axis=1) - 1
        chosen = (self.choice >> np.clip(number, 0, _MOST_UNSURE)) & 1
        beyond = -at.values if self.point else at.errors
        return np.where(self.unsure, np.where(chosen, beyond, -at.errors), 0.0)


def reduced_candidates(
    reading: Reading, y: UncertainSamples, x: UncertainSamples, function: str
) -> Iterator[Candidate]:
    """Yield a candidate for each choice of sides: the averages or maxima of outputs' samples.

    An output with more unsure samples along an axis than `_MOST_UNSURE`, or than memory permits,
    may have any value between its least and its greatest result.
    """
    open_sides = unsure(reading, y, 1), unsure(reading, x, 2)
    counts = [axis.sum(axis=1) for axis in open_sides]
    bits = _tried(counts, prod(output_sizes(reading, y, x)))
    many = [count > most for count, most in zip(counts, bits, strict=True)]
    crowded = many[0][:, :, np.newaxis] | many[1][:, np.newaxis, :]
    hull = _reduced(reading, y, x, function, None) if crowded.any() else None
    for down, across in product(range(1 << bits[0]), range(1 << bits[1])):
        sides = (
            _Side(open_sides[0], down, reading.is_point(1)),
            _Side(open_sides[1], across, reading.is_point(2)),
        )
        candidate = _reduced(reading, y, x, function, sides)
        yield candidate if hull is None else _chosen(crowded[..., np.newaxis], hull, candidate)


def _tried(counts: Sequence[Array], elements: int) -> list[int]:
    """Return for each axis how many unsure samples of an output are tried on both sides."""
    bits = [min(int(count.max(initial=0)), _MOST_UNSURE) for count in counts]
    while any(bits) and elements << sum(bits) > _MOST_ELEMENTS:
        bits[bits.index(max(bits))] -= 1
    return bits


def _chosen(where: Array, one: Candidate, other: Candidate) -> Candidate:
    return Candidate(
        np.where(where, one.least, other.least),
        np.where(where, one.most, other.most),
        np.where(where, one.error, other.error),
    )


def _reduced(
    reading: Reading,
    y: UncertainSamples,
    x: UncertainSamples,
    function: str,
    sides: tuple[_Side, _Side] | None,
) -> Candidate:
    """Return the results of one choice of sides, or if `sides` is None the hull of all choices."""
    moves = np.zeros((1, 1)), np.zeros((1, 1))
    if sides is not None:
        moves = _moves(y, sides[0]), _moves(x, sides[1])
        y, x = (
            _moved(at, side, steady=not reading.linear)
            for at, side in zip((y, x), sides, strict=True)
        )
    sizes = output_sizes(reading, y, x)
    candidate = Candidate(np.empty(sizes), np.empty(sizes), np.empty(sizes))
    moved = np.broadcast_to(moves[0][..., np.newaxis] + moves[1][..., np.newaxis, :], sizes[:-1])
    for block in uncertain_blocks(y, x, sizes[-1]):
        here = block.outputs
        ends = _ends(reading.of(block), block, function, moved[here])
        candidate.least[here], candidate.most[here], candidate.error[here] = ends
    return candidate


def _moves(at: UncertainSamples, side: _Side) -> Array:
    """Return how far the unsure samples of each output move at most, sizes {regions, outputs}."""
    moves: Array = np.max(at.errors, axis=1, where=side.unsure, initial=0.0)
    return moves


def _moved(at: UncertainSamples, side: _Side, *, steady: bool) -> UncertainSamples:
    """Return the samples, with unsure ones moved to their side of the boundary.

    If `steady`, the result is constant between boundaries, so the other samples have no error.
    """
    errors = np.where(side.unsure | steady, 0.0, at.errors)
    return replace(at, values=at.values + side.shifts(at), errors=errors)


def _ends(
    reading: Reading, block: UncertainBlock, function: str, moved: Array
) -> tuple[Array, Array, Array]:
    """Return the least and the greatest result, and the error of the arithmetic.

    If samples move by d, a linear interpolation changes by at most 2 d times its greatest element.

    Args:
        moved: how far samples of each output move, rows and columns together, sizes {regions, rows,
            columns}.
    """
    rows = coordinates_within(block.y, block.y_errors)
    columns = coordinates_within(block.x, block.x_errors)
    samples = [reading.at(y, x) for y, x in product(rows, columns)]
    extremes = np.minimum.reduce(samples), np.maximum.reduce(samples)
    least, most = (of_samples(extreme, block, function) for extreme in extremes)
    error_scale = of_samples(greatest(reading, block.y, block.x), block, function)
    totals = block.counts if function == "AVERAGE" else 1
    of_sample = _INTERPOLATION + 2 * moved[..., np.newaxis] / STEP if reading.linear else 0
    operations = totals - 1 + of_sample
    beyond = error_scale * np.maximum(totals, 2 if reading.linear else 1) > np.finfo(np.float32).max
    error = np.where(beyond, np.inf, error_scale * (operations * STEP))
    return least, most, error
