"""Permitted errors of a step of ADAM_OPTIMIZER."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from dmlconf.permitted.numbers.accuracy import EXP2_ERROR, LOG2_ERROR
from dmlconf.permitted.numbers.half import to_nearest, toward_zero
from dmlconf.permitted.numbers.rounding import STEP, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.training import AdamOptimizerDesc, bias_correction, moving_average
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import (
    LARGEST_FLOAT16,
    LARGEST_FLOAT32,
    LEAST_NORMAL_FLOAT32,
    LEAST_SUBNORMAL_FLOAT32,
)

__all__ = [
    "adam_optimizer_candidates",
]


class _Moments(NamedTuple):
    """The updated moments M and V, FLOAT64, and the greatest error of each element."""

    m: Array
    v: Array
    m_error: Array
    v_error: Array


class _Held(NamedTuple):
    """The moments from which parameters are computed, FLOAT64, and the ends of their intervals."""

    m: Array
    v: Array
    m_ends: Interval
    v_ends: Interval


@of_fields(AdamOptimizerDesc)
def adam_optimizer_candidates(desc: AdamOptimizerDesc) -> tuple[Sequence[Interval], ...]:
    """Return the candidates for the parameters, and one interval for each of the moments.

    FLOAT16 parameters have a candidate for each way to hold both moments: in FLOAT32, truncated to
    FLOAT16, and rounded to the nearest FLOAT16 number. Further candidates are for a V that may have
    either sign, and for a step that may overflow before it is divided.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp, log, sqrt).
    Measured: DirectML 1.15.4 truncates the moments in tensors of more than 4 dimensions.
    """
    dtype = desc.OutputParametersTensor.DataType.dtype
    with np.errstate(all="ignore"):
        moments = _moments(desc)
        m, v, m_error, v_error = moments
        ends_of_alpha = _bias_correction_ends(desc)
        of_m = _undefined(rounded_interval(m, m_error, dtype), np.isinf(m_error))
        of_v = _not_negative(rounded_interval(v, v_error, dtype), desc)
        overflowing = np.isinf(m_error) | np.isinf(v_error)
        of_parameters = [
            _parameters(desc, held, ends_of_alpha)
            for held in chain(_held(moments, dtype), _of_the_other_sign(desc, moments))
        ]
        of_parameters += _infinite_steps(desc, moments, of_parameters[0])
        return (
            [_undefined(interval, overflowing) for interval in of_parameters],
            [of_m],
            [_undefined(of_v, np.isinf(v_error))],
        )


def _held(moments: _Moments, dtype: np.dtype[Any]) -> Iterator[_Held]:
    """Yield the moments as kernels may hold them until they compute the parameters.

    A moment beyond the largest FLOAT16 number may be held as this number or as infinity.
    """
    m, v, m_error, v_error = moments
    m_reach, v_reach = np.abs(m) * STEP + m_error, np.abs(v) * STEP + v_error
    m_ends, v_ends = (m - m_reach, m + m_reach), (v - v_reach, v + v_reach)
    yield _Held(m, v, m_ends, v_ends)
    if dtype == np.float16:
        for store in (toward_zero, _to_nearest_or_infinity):
            (m_least, m_most), (v_least, v_most) = map(store, m_ends), map(store, v_ends)
            yield _Held(store(m), store(v), (m_least, m_most), (v_least, v_most))


def _of_the_other_sign(desc: AdamOptimizerDesc, moments: _Moments) -> Iterator[_Held]:
    """Yield the moments with another V where errors may change its sign.

    A negative V that may be 0 becomes 0: measured on DirectML 1.12.1, which flushes V. A V of 0 or
    more that may be negative becomes -1, since the root of any negative V is NaN.
    """
    m, v, m_error, v_error = moments
    m_reach, v_reach = np.abs(m) * STEP + m_error, np.abs(v) * STEP + v_error
    ends = (m - m_reach, m + m_reach), (v - v_reach, v + v_reach)
    flushed = (v < 0) & (v + v_reach >= 0)
    if flushed.any():
        yield _Held(m, np.where(flushed, 0.0, v), *ends)
    negative = (v >= 0) & (v - v_reach < 0) & ~_never_negative(desc)
    if negative.any():
        yield _Held(m, np.where(negative, -1.0, v), *ends)


def _to_nearest_or_infinity(values: Array) -> Array:
    """Return the nearest FLOAT16 numbers, and infinity beyond the largest one, as measured."""
    beyond = np.abs(values) > LARGEST_FLOAT16
    return np.where(beyond, np.copysign(np.inf, values), to_nearest(values))


def _parameters(
    desc: AdamOptimizerDesc, held: _Held, ends_of_alpha: tuple[float, float]
) -> Interval:
    epsilon, rate = single(desc.Epsilon), single(desc.LearningRate)
    alpha = bias_correction(desc)
    least, most = (np.sqrt(np.maximum(end, 0)) for end in held.v_ends)
    least, most = least * (1 - 2 * STEP) + epsilon, most * (1 + 2 * STEP) + epsilon
    least, most = least - np.abs(least) * STEP, most + np.abs(most) * STEP
    steps = rate * alpha * held.m / (np.sqrt(held.v) + epsilon)
    ends = [
        rate * end_of_alpha * end_of_m / divisor * (1 + sign * 4 * STEP)
        for end_of_alpha in ends_of_alpha
        for end_of_m in held.m_ends
        for divisor in (least, most)
        for sign in (-1, 1)
    ]
    shortest, longest = np.minimum.reduce(ends), np.maximum.reduce(ends)
    parameters = desc.InputParametersTensor - steps
    dtype = desc.OutputParametersTensor.DataType.dtype
    lowest, _ = rounded_interval(parameters, np.maximum(longest - steps, 0), dtype)
    _, highest = rounded_interval(parameters, np.maximum(steps - shortest, 0), dtype)
    # A divisor that may be 0 or not makes steps of any length and either sign.
    around_zero = (least <= 0) & (most >= 0)
    undefined = around_zero & (least != most)
    # Measured: with M = 3e38 and LearningRate = 65504, infinity less an infinite step is NaN.
    size = np.maximum(np.abs(shortest), np.abs(longest))
    undefined |= np.isinf(desc.InputParametersTensor) & (size > LARGEST_FLOAT32)
    # Rounding may make 0 of M, and 0 / 0 is NaN.
    m_least, m_most = held.m_ends
    # Measured: an M of 0 times an infinite LearningRate is NaN as well.
    may_be_nan = around_zero | np.isinf(rate)
    undefined |= (m_least < m_most) & (m_least <= 0) & (m_most >= 0) & may_be_nan
    # Kernels may compute powers with logarithms, which negative numbers do not have. With a Beta
    # above 1, the bias correction may be negative or NaN; with a Beta1 of 1 it is infinite.
    undefined |= not (0 <= desc.Beta1 <= 1 and 0 <= desc.Beta2 <= 1 and np.isfinite(alpha))
    return _undefined((lowest, highest), undefined)


def _infinite_steps(desc: AdamOptimizerDesc, moments: _Moments, finite: Interval) -> list[Interval]:
    """Return a candidate with infinities where LearningRate * Alpha, or that times M, overflows.

    There is none if no product overflows, or only where the divisor is 0. Elsewhere the candidate
    is the interval `finite`. Measured on DirectML 1.8.2: the step 2 * 3.4e38 / 1.6e7 is infinite,
    since the product comes first. Measured on 1.8.0 and 1.15.4: with LearningRate 3.4e38 and Alpha
    1.7, a step of 3.6e37 is infinite, and one of 0 is NaN.
    """
    m = np.abs(moments.m) * (1 + STEP) + moments.m_error
    rate = np.abs(single(desc.LearningRate) * bias_correction(desc))
    product = rate * np.maximum(m, 1)
    divisor = np.sqrt(np.maximum(moments.v, 0)) + single(desc.Epsilon)
    overflows = np.isfinite(product) & (product > LARGEST_FLOAT32) & (divisor != 0)
    if not overflows.any():
        return []
    sign = np.sign(single(desc.LearningRate) * moments.m) * np.sign(divisor)
    infinite = (desc.InputParametersTensor - sign * np.inf).astype(finite[0].dtype)
    low, high = (np.where(overflows, infinite, end) for end in finite)
    return [(low, high)]


def _undefined(interval: tuple[Array, Array], where: Array) -> tuple[Array, Array]:
    lowest, highest = interval
    lowest[where], highest[where] = -np.inf, np.inf
    return lowest, highest


def _not_negative(interval: tuple[Array, Array], desc: AdamOptimizerDesc) -> tuple[Array, Array]:
    lowest, highest = interval
    return np.where(_never_negative(desc) & (lowest < 0), lowest.dtype.type(0), lowest), highest


def _never_negative(desc: AdamOptimizerDesc) -> Array:
    """Return where no way of rounding gives a negative V.

    This holds for V >= 0 and Beta2 from 0 to 1, by both formulas of `_moments`.
    """
    never: Array = (desc.InputSecondMomentTensor >= 0) & (0 <= desc.Beta2 <= 1)
    return never


def _moments(desc: AdamOptimizerDesc) -> _Moments:
    """Return the updated moments and their errors, infinite where an intermediate may overflow.

    Kernels compute `M + (1 - Beta) * (G - M)` or, as on the operator's page,
    `Beta * M + (1 - Beta) * G`. The greater error of the two counts.
    """
    slopes = desc.GradientTensor.astype(np.float64)
    values, errors = [], []
    for old, new, decay in (
        (desc.InputFirstMomentTensor.astype(np.float64), slopes, single(desc.Beta1)),
        (desc.InputSecondMomentTensor.astype(np.float64), slopes * slopes, single(desc.Beta2)),
    ):
        share = 1 - decay
        value = moving_average(old, new, decay)
        of_new, of_share = _rounding_error(new), _of_difference(*map(np.asarray, (1.0, decay)))
        of_difference = of_new + _of_difference(new, old)
        of_product = abs(share) * of_difference + np.abs(new - old) * of_share
        of_sum = of_product + _rounding_error(share * (new - old))
        of_product = abs(share) * of_new + np.abs(new) * of_share
        of_terms = of_product + _rounding_error(share * new) + _rounding_error(decay * old)
        error = np.maximum(of_sum, of_terms)
        values.append(value)
        sizes = (np.where(np.isfinite(each), np.abs(each), 0.0) for each in (new, old))
        overflowing = sum(sizes) * max(1.0, abs(share), abs(decay)) > LARGEST_FLOAT32
        error += np.where(error > 0, STEP * np.abs(value), _rounding_error(value))
        errors.append(np.where(overflowing, np.inf, error))
    return _Moments(*values, *errors)


def _of_difference(new: Array, old: Array) -> Array:
    """Return the FLOAT32 rounding error of `new - old`; `rest` is what FLOAT64 rounds off.

    Source: Knuth, The Art of Computer Programming, volume 2, 4.2.2: the error of a sum.
    """
    difference = new - old
    share = difference - new
    rest = (new - (difference - share)) - (old + share)
    error: Array = np.where(rest == 0, _rounding_error(difference), np.abs(difference) * STEP)
    return error


def _rounding_error(value: Any) -> Any:
    """Return the greatest error of rounding FLOAT64 numbers to FLOAT32.

    The error is 0 for 0, and for normal numbers that FLOAT32 holds. Subnormal numbers may be
    flushed to 0, or rounded to a multiple of 2^-149.
    """
    size = np.abs(value)
    flushed = np.where(size > 0, np.maximum(size, LEAST_SUBNORMAL_FLOAT32), 0.0)
    held = np.float32(value) == value
    return np.where(size < LEAST_NORMAL_FLOAT32, flushed, np.where(held, 0.0, size * STEP))


def _bias_correction_ends(desc: AdamOptimizerDesc) -> tuple[float, float]:
    """Return the least and the greatest bias correction that FLOAT32 arithmetic may give."""
    count = float(desc.TrainingStepTensor.ravel()[0])
    if count == 0:
        return 1.0, 1.0
    (first, first_error), (second, second_error) = (
        _one_less_power(single(beta), count) for beta in (desc.Beta1, desc.Beta2)
    )
    greatest = np.sqrt(second + second_error) / np.maximum(first - first_error, 0)
    least = np.sqrt(np.maximum(second - second_error, 0)) / (first + first_error)
    return float(least * (1 - 4 * STEP)), float(greatest * (1 + 4 * STEP))


def _one_less_power(base: float, exponent: float) -> tuple[Any, Any]:
    """Return `1 - base ** exponent`, and its error if a kernel computes powers by log2 and exp2.

    The error is 0 if the base has no finite logarithm.
    """
    power = np.float64(base) ** exponent
    logarithm = np.log2(np.float64(base))
    if not np.isfinite(logarithm):
        return 1 - power, np.float64(0)
    size = abs(logarithm)
    error_of_argument = exponent * (max(1.0, size) * LOG2_ERROR + 2 * STEP * size)
    error = np.exp2(exponent * logarithm + error_of_argument) - power + power * EXP2_ERROR
    return 1 - power, error + STEP * np.abs(1 - power)
