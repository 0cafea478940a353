"""Permitted gradients of resampling, whose coordinates and sums are computed in FLOAT32.

With LINEAR, the error of a coordinate changes the weights a little, so there is an interval. With
NEAREST_NEIGHBOR, the gradient at 1.5 +- 1e-7 is added to element 1 or to element 2, so there are
candidates.

Source: Direct3D 11.3 functional specification, 3.1: each operation rounds up or down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import ANY_RESULT, STEP, anything_where, rounded_interval
from dmlconf.permitted.resampling.coordinates import PRECISION, UncertainCoordinates, quanta
from dmlconf.permitted.resampling.spreading import elements_within_reach
from dmlconf.precision.allowance import Interval
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.resampling.interpolation import along, nearest, neighbours
from dmlconf.reference.resampling.spreading import spread, summed, weighted
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import (
    FLOAT16_EPSILON,
    LARGEST_FLOAT16,
    LARGEST_FLOAT32,
    LEAST_NORMAL_FLOAT32,
    LEAST_SUBNORMAL_FLOAT16,
)

__all__ = ["linear_interval", "nearest_candidates"]

_MOST_CANDIDATES: Final = 64
"""The most candidates: 4 along each of three axes."""


def linear_interval(
    gradient: Array, at: Sequence[UncertainCoordinates], output: TensorDesc, stores: int = 0
) -> Interval:
    """Return the interval of LINEAR: the least and the greatest right sums of weighted gradients.

    Along each axis, a gradient g has a weight w with the error e of its coordinate. So the sum has
    the error

        sum of |g| * (product over the axes of (w + e) - product over the axes of w)

    Each term also has the rounding errors of a subtraction and a multiplication for each axis, and
    of the additions. There is no error if FLOAT32 holds all sums exactly in any order. Any result
    is right for elements that infinite, NaN or enormous gradients may reach, even with a weight
    of 0.

    Args:
        stores: how often FLOAT16 may hold sums before they are added up along all axes.
    """
    values = wide(gradient)
    beyond = ~(np.abs(values) <= LARGEST_FLOAT32 / 4)
    values = np.where(beyond, 0.0, values)
    sums = values
    error_scales = uncertain = np.abs(values)
    terms = np.ones((1,) * values.ndim)
    quantum = float(np.min(quanta(values), initial=np.inf))
    for axis, (of_axis, size) in enumerate(zip(at, output.Sizes, strict=True)):
        sums = spread(sums, axis, of_axis, size)
        error_scales = spread(error_scales, axis, of_axis, size)
        within = _without_errors_outside(of_axis, size)
        uncertain = _spread_errors(uncertain, axis, within, size)
        terms = terms * along(_counts(within, size), axis, values.ndim)
        beyond = elements_within_reach(beyond, axis, of_axis, size)
        weights = of_axis.values - np.floor(of_axis.values)
        share = np.where(of_axis.errors > 0, 0.0, np.minimum(quanta(weights), 1.0))
        quantum *= float(share.min(initial=1.0))
    operations = terms + 2 * values.ndim
    errors = uncertain - error_scales + uncertain * (STEP * operations)
    if stores:
        quantum = 0.0  # FLOAT16 may round a sum that FLOAT32 holds exactly.
        errors = errors + stores * (FLOAT16_EPSILON * uncertain + LEAST_SUBNORMAL_FLOAT16 * terms)
        beyond = beyond | (uncertain > LARGEST_FLOAT16)
    return _rounded(sums, errors, error_scales, quantum, output, beyond)


def _without_errors_outside(at: UncertainCoordinates, size: int) -> UncertainCoordinates:
    """Return the coordinates, without errors where both neighbours are the same element.

    With 4 elements, the coordinates -0.3 and 3.2 belong to the elements 0 and 3 alone.
    """
    outside = (at.values + at.errors <= 0) | (at.values - at.errors >= size - 1)
    return replace(at, errors=np.where(outside, 0.0, at.errors))


def _spread_errors(values: Array, axis: int, at: UncertainCoordinates, size: int) -> Array:
    """Return sums of elements times the greatest weights that their coordinates permit.

    An element is added at the two indices around its coordinate, and at the next ones that the
    error reaches. An element with an error of 1 or more is added without the error, and also with
    the weight 1 at all indices within the error.
    """
    far = at.errors >= 1
    if far.any():
        last = size - 1
        low = np.clip(np.floor(at.values - at.errors), 0, last).astype(np.intp)
        high = np.clip(np.floor(at.values + at.errors) + 1, 0, last).astype(np.intp)
        elements, reached = _between(low[far], high[far])
        elements = np.flatnonzero(far)[elements]
        order = np.argsort(reached, kind="stable")
        ones = np.ones(len(order))
        everywhere = weighted(values, axis, elements[order], ones, reached[order], size)
        certain = replace(at, errors=np.where(far, 0.0, at.errors))
        return everywhere + _spread_errors(values, axis, certain, size)
    first, second, weight = neighbours(at.values, size)
    before, after = np.maximum(first - 1, 0), np.minimum(second + 1, size - 1)
    indices = np.concatenate([first, second, before, after])
    weights = np.concatenate(
        [
            1 - weight + at.errors,
            weight + at.errors,
            np.where(first > before, np.maximum(at.errors - weight, 0), 0),
            np.where(after > second, np.maximum(at.errors - (1 - weight), 0), 0),
        ]
    )
    order = np.argsort(indices, kind="stable")
    return weighted(values, axis, order % len(first), weights[order], indices[order], size)


def _between(low: Array, high: Array) -> tuple[Array, Array]:
    """Return each element with all indices from low to high.

    For low [3, 7] and high [5, 7] the result is [0, 0, 0, 1] and [3, 4, 5, 7].
    """
    counts = high - low + 1
    elements = np.repeat(np.arange(len(low)), counts)
    indices = np.arange(len(elements)) - np.repeat(np.cumsum(counts) - counts - low, counts)
    return elements, indices


def _counts(at: UncertainCoordinates, size: int) -> Array:
    """Return how many gradients may be added up at each index, at least 1."""
    first, second, weight = neighbours(at.values, size)
    indices = np.concatenate([first[weight < 1], second[weight + at.errors > 0]])
    return np.maximum(np.bincount(indices, minlength=size), 1).astype(np.float64)


def _rounded(
    sums: Array,
    errors: Array,
    error_scales: Array,
    quantum: float,
    output: TensorDesc,
    undefined: Array | bool,
) -> Interval:
    """Return intervals around sums, in the output's type.

    There is no error if FLOAT32 holds all multiples of `quantum` up to the error scale. Any result
    is right if a finite error scale exceeds the largest FLOAT32 number.
    """
    exact = (error_scales <= quantum * 2.0**PRECISION) & (quantum >= LEAST_NORMAL_FLOAT32)
    overflows = np.isfinite(error_scales) & (error_scales > LARGEST_FLOAT32)
    error = np.where(overflows, ANY_RESULT, np.where(exact, 0.0, errors))
    return anything_where(
        np.broadcast_to(undefined, sums.shape),
        rounded_interval(sums, error, output.DataType.dtype),
    )


def nearest_candidates(
    gradient: Array, at: Sequence[UncertainCoordinates], rounding: str, output: TensorDesc
) -> list[Interval]:
    """Return the candidates of NEAREST_NEIGHBOR: a gradient may belong to either of 2 elements.

    A gradient is near a boundary between two elements if the error of its coordinate reaches the
    boundary. One interval replaces the candidates if several gradients are near one boundary, if
    one gradient is near several, or if there are more than _MOST_CANDIDATES.
    """
    values = wide(gradient)
    sides = [
        (
            nearest(axis.values - axis.errors, size, rounding),
            nearest(axis.values + axis.errors, size, rounding),
        )
        for axis, size in zip(at, output.Sizes, strict=True)
    ]
    choices = [_memberships(*ends) for ends in sides]
    if any(_crowded(*ends) for ends in sides) or prod(map(len, choices)) > _MOST_CANDIDATES:
        return [_nearest_hull(values, sides, output)]
    with np.errstate(all="ignore"):
        return [_nearest_sums(values, chosen, output) for chosen in product(*choices)]


_Members = tuple[Array, Array]
"""Indices of gradients along an axis, and the element to which each gradient belongs."""


def _memberships(low: Array, high: Array) -> list[_Members]:
    """Return the ways to assign gradients to elements.

    If gradients are near boundaries, there are four ways: all of these gradients belong to no
    element, to the lower one, to the upper one, or to both. So an element may get each combination
    of the gradients near its two boundaries.
    """
    every = np.arange(len(low))
    near = low != high
    if not near.any():
        return [(every, low)]
    inside = every[~near], low[~near]
    ends: list[_Members] = [(every[near], low[near]), (every[near], high[near])]
    some: list[list[_Members]] = [[], ends[:1], ends[1:], ends]
    return [_joined([inside, *more]) for more in some]


def _joined(members: Sequence[_Members]) -> _Members:
    gradients, elements = (np.concatenate(part) for part in zip(*members, strict=True))
    return gradients, elements


def _crowded(low: Array, high: Array) -> bool:
    near = low != high
    most = max(np.bincount(side[near], minlength=1).max() for side in (low, high))
    return bool(most > 1 or (high - low).max() > 1)


def _nearest_sums(values: Array, chosen: Sequence[_Members], output: TensorDesc) -> Interval:
    sums, error_scales = values, np.abs(values)
    finite = np.where(np.isfinite(values), error_scales, 0.0)
    terms = np.ones((1,) * values.ndim)
    for axis, (members, size) in enumerate(zip(chosen, output.Sizes, strict=True)):
        sums = _summed(sums, axis, members, size)
        finite = _summed(finite, axis, members, size)
        error_scales = _summed(error_scales, axis, members, size)
        counts = np.bincount(members[1], minlength=size).astype(np.float64)
        terms = terms * along(np.maximum(counts, 1), axis, values.ndim)
    errors = error_scales * (STEP * (terms - 1))
    quantum = float(np.min(quanta(values), initial=np.inf))
    # If finite gradients overflow, the order decides whether a sum with an infinity is NaN.
    return _rounded(sums, errors, error_scales, quantum, output, finite > LARGEST_FLOAT32)


def _summed(values: Array, axis: int, members: _Members, size: int) -> Array:
    gradients, elements = members
    if not len(elements):
        return np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]))
    order = np.argsort(elements, kind="stable")
    ones = np.ones(len(order))
    return weighted(values, axis, gradients[order], ones, elements[order], size)


def _nearest_hull(values: Array, sides: Sequence[_Members], output: TensorDesc) -> Interval:
    """Return the least and the greatest sum that each element may get.

    A gradient may belong to one or several of the elements within its coordinate's error. Any
    result is right where an infinite or NaN gradient may belong to the element or not. Any result
    is also right where the absolute values of finite gradients add up to more than FLOAT32 holds.
    """
    sizes = output.Sizes
    parts = [np.maximum(values, 0), np.minimum(values, 0)]
    certain, possible, terms = list(parts), list(parts), 1
    special = (~np.isfinite(values)).astype(np.float64)
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    uncertain = np.zeros_like(special)
    for axis, (low, high) in enumerate(sides):
        size = sizes[axis]
        sure = along(low == high, axis, values.ndim)
        with np.errstate(all="ignore"):
            certain = [summed(np.where(sure, part, 0), axis, low, size) for part in certain]
            members = _between(low, high)
            possible = [_summed(part, axis, members, size) for part in possible]
        doubtful = np.where(sure, uncertain, np.maximum(uncertain, special))
        uncertain = _summed(doubtful, axis, members, size)
        special = _summed(special, axis, members, size)
        finite = _summed(finite, axis, members, size)
        terms *= int(np.bincount(members[1]).max())
    dtype = output.DataType.dtype
    with np.errstate(all="ignore"):
        lowest, highest = possible[1] + certain[0], possible[0] + certain[1]
        error = (possible[0] - possible[1]) * (STEP * terms)
        least, _ = rounded_interval(lowest, error, dtype)
        _, greatest = rounded_interval(highest, error, dtype)
    return anything_where((uncertain > 0) | (finite > LARGEST_FLOAT32), (least, greatest))
