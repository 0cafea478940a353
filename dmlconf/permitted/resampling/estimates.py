"""Interpolated elements and their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.permitted.resampling.coordinates import PRECISION, UncertainCoordinates, quanta
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.resampling.interpolation import along, index_within, neighbours
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = [
    "Estimate",
    "extrapolated_estimate",
    "interpolated_estimate",
]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Interpolated values, with a bound of their errors.

    Attributes:
        values: the results without rounding, FLOAT64.
        error_scales: the sums of the absolute values of the weighted elements.
        errors: the greatest errors where FLOAT32 arithmetic rounds.
        quanta: powers of two; all intermediates of a value are multiples of its quantum. Infinite
            for an element of 0; 0 if no quantum is known.
        spans: bounds of the absolute values of all intermediates; unused where the quantum is 0.
    """

    values: Array
    error_scales: Array
    errors: Array
    quanta: Array
    spans: Array

    @classmethod
    def of(cls, tensor: Array) -> Estimate:
        """Return the elements of a tensor, without errors."""
        values = wide(tensor)
        sizes = np.abs(values)
        return cls(values, sizes, np.zeros_like(values), quanta(values), sizes)

    def bounds(self) -> Array:
        """Return the greatest errors; 0 where FLOAT32 holds all intermediates exactly.

        FLOAT32 holds up to 2^24 multiples of a quantum, unless it flushes a subnormal quantum.
        """
        exact = (self.spans <= self.quanta * 2.0**PRECISION) & (self.quanta >= LEAST_NORMAL_FLOAT32)
        return np.where(exact, 0.0, self.errors)


def interpolated_estimate(of: Estimate, axis: int, at: UncertainCoordinates) -> Estimate:
    """Return the interpolation along an axis, with a bound of its error.

    The error of a coordinate is multiplied by the difference of the two elements around it. If the
    error reaches one of the two, a larger difference between it and the next element counts.
    """
    size = of.values.shape[axis]
    if at.is_whole(size) and not at.errors.any():
        return of
    rank = of.values.ndim
    first, second, weight = neighbours(at.values, size)
    lower, upper = of.values.take(first, axis), of.values.take(second, axis)
    apart = np.abs(upper - lower)
    inside, outside = weight <= at.errors, 1 - weight <= at.errors
    if inside.any() or outside.any():
        previous = of.values.take(np.where(inside, np.maximum(first - 1, 0), first), axis)
        following = np.where(outside, np.minimum(second + 1, size - 1), second)
        steeper = np.maximum(
            np.abs(lower - previous), np.abs(of.values.take(following, axis) - upper)
        )
        apart = np.maximum(apart, steeper)
    share, error = along(weight, axis, rank), along(at.errors, axis, rank)
    sizes = of.error_scales.take(first, axis), of.error_scales.take(second, axis)
    error_scales = sizes[0] + share * (sizes[1] - sizes[0])
    errors = of.errors.take(first, axis) * (1 - share) + of.errors.take(second, axis) * share
    errors += error * apart + STEP * (error_scales + 2 * share * (sizes[0] + sizes[1]))
    values = lower + share * (upper - lower)
    return Estimate(values, error_scales, errors, *_exactness(of, axis, at, first, second, weight))


def _exactness(
    of: Estimate, axis: int, at: UncertainCoordinates, first: Array, second: Array, weight: Array
) -> tuple[Array, Array]:
    single_element = along(weight == 0, axis, of.values.ndim)
    share = along(np.where(at.errors > 0, 0.0, quanta(weight)), axis, of.values.ndim)
    (quantum, span), (other, larger) = (
        [part.take(index, axis) for part in (of.quanta, of.spans)] for index in (first, second)
    )
    between = np.minimum(share, 1.0) * np.minimum(quantum, other)
    spans = np.where(single_element, span, 2 * np.maximum(span, larger))
    return np.where(single_element & (share > 0), quantum, between), spans


def extrapolated_estimate(
    of: Estimate, axis: int, coordinate_errors: Array, starts: Array, weights: Array
) -> Estimate:
    """Return points on lines, each through two neighbouring elements.

    Args:
        coordinate_errors: how far each weight may be off.
        starts: the index of the first element of each line, FLOAT64.
        weights: the weight of the second element of each line; may be below 0 or above 1.
    """
    size, rank = of.values.shape[axis], of.values.ndim
    first, second = (index_within(index, size) for index in (starts, starts + 1))
    share, error = along(weights, axis, rank), along(coordinate_errors, axis, rank)
    (lower, sizes, errors), (upper, *ends) = (
        [part.take(index, axis) for part in (of.values, of.error_scales, of.errors)]
        for index in (first, second)
    )
    shares = np.abs(1 - share), np.abs(share)
    error_scales = shares[0] * sizes + shares[1] * ends[0]
    errors = shares[0] * errors + shares[1] * ends[1] + error * np.abs(upper - lower)
    errors += STEP * (error_scales + 2 * shares[1] * (sizes + ends[0]))
    values = lower + share * (upper - lower)
    return Estimate(values, error_scales, errors, np.zeros_like(values), error_scales)
