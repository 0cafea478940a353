"""Errors of means, and of `(x - mean) / deviation`, which several normalisations compute."""

from __future__ import annotations

import numpy as np

from dmlconf.permitted.numbers.rounding import HALF_STEP
from dmlconf.permitted.numbers.terms import steps_beside_sum
from dmlconf.precision.accumulation import roundings
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = [
    "cancellation_of",
    "of_rounding_alone",
    "partial_mean",
    "quotient_scale",
    "unbounded",
    "variance_overflows",
]


def cancellation_of(variance: Array, epsilon: float) -> Array:
    """Return the factor by which a negative epsilon amplifies the relative error of the variance.

    It is 1.9 / 0.1 = 19 for a variance of 1 and an epsilon of -0.9, and 1 for an epsilon of 0 or
    more.
    """
    sizes = np.abs(variance) + abs(single(epsilon))
    return sizes / np.abs(variance + single(epsilon)) if epsilon < 0 else np.ones_like(sizes)


def quotient_scale(
    size: Array,
    partial: Array,
    centred: Array,
    variance: Array,
    deviation: Array,
    terms: int,
    alike: tuple[float, float] = (1.0, 1.0),
) -> Array:
    """Return the error scale of `(x - mean) / deviation` with computed mean and variance.

    Derived in docs/bounds.md, Normalisation.

    Args:
        size: the absolute values of x, FLOAT64.
        partial: what `partial_mean` returns for x.
        centred, variance, deviation: `x - mean`, the variance, and the root of the variance plus
            epsilon, FLOAT64.
        terms: of how many elements the mean and the variance are taken.
        alike: what `numbers.terms.alike` returns for x, and for the squares of `x - mean`.
    """
    quotient = np.abs(centred) / deviation
    step = roundings(terms) * HALF_STEP
    of_mean = alike[0] * partial / deviation
    of_sum = np.maximum(variance / np.square(deviation), 1.0)
    of_variance = 0.5 * alike[1] * of_sum
    of_variance += np.minimum(0.5 * np.square(step * of_mean), 1.0) / step
    squares = (variance + np.square(partial)) / np.square(deviation)
    # A kernel may add up squares of the elements, and subtract the square of the mean.
    of_variance += 0.25 * squares
    steps = 4 * (size + 2 * partial) / deviation + quotient * (16 + 8 * squares)
    scale: Array = of_mean + quotient * of_variance + steps_beside_sum(steps, terms)
    return scale


def partial_mean(values: Array, over: tuple[int, ...]) -> Array:
    """Return the greatest magnitude of a partial sum in any order, divided by the number of terms.

    That sum is of all positive terms or of all negative ones: of 3, -1 and -4 the result is 5 / 3.

    Derived in docs/bounds.md, Partial sums.
    """
    positive = np.maximum(values, 0).mean(over, keepdims=True)
    negative = np.maximum(-values, 0).mean(over, keepdims=True)
    partial: Array = np.maximum(positive, negative)
    return partial


def of_rounding_alone(partial: Array, deviation: Array, terms: int) -> Array:
    """Return where `(x - mean) / deviation` may consist of rounding errors alone.

    There, 3 or more numbers that are not all 0 have the deviation 0. Measured: the mean of 31
    FLOAT32 numbers 3.3 is off by one ULP. The mean of one number, of two equal ones and of zeros is
    exact.
    """
    alone: Array = (deviation == 0) & (partial > 0) & (terms > 2)
    return alone


def unbounded(factor: Array, deviation: Array) -> Array:
    """Return where `factor`, a quotient by the deviation, is or may be infinite.

    Hardware may flush the square of the deviation, variance plus Epsilon, to 0 if it is subnormal.
    """
    underflow = np.square(deviation) < LEAST_NORMAL_FLOAT32
    return np.isinf(factor) | (underflow & (np.abs(factor) > 0))


def variance_overflows(variance: Array, epsilon: float) -> Array:
    """Return where a finite variance plus Epsilon exceeds FLOAT32: a quotient by its root may be 0.

    Measured: with a variance and an Epsilon of 3.4e38, DirectML 1.15.4 gives gradients of 0.
    """
    variance = wide(variance)
    beyond: Array = np.isfinite(variance) & (variance + single(epsilon) > LARGEST_FLOAT32)
    return beyond
