"""Operators that update the weights of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.accuracy import EXP2_ERROR, LOG2_ERROR
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.numbers.rounding import STEP, rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = ["AdamOptimizerDesc", "adam_optimizer", "adam_optimizer_interval"]

_LARGEST: Final = float(np.finfo(np.float32).max)


class _Moments(NamedTuple):
    """The updated moments M and V of a gradient, FLOAT64, and their errors."""

    m: Array
    v: Array
    m_error: Array
    v_error: Array


@dataclass(frozen=True, slots=True)
class AdamOptimizerDesc:
    """The fields of DML_ADAM_OPTIMIZER_OPERATOR_DESC."""

    InputParametersTensor: Array
    InputFirstMomentTensor: Array
    InputSecondMomentTensor: Array
    GradientTensor: Array
    TrainingStepTensor: Array
    OutputParametersTensor: TensorDesc
    OutputFirstMomentTensor: TensorDesc
    OutputSecondMomentTensor: TensorDesc
    LearningRate: float
    Beta1: float
    Beta2: float
    Epsilon: float


@of_fields(AdamOptimizerDesc)
def adam_optimizer(desc: AdamOptimizerDesc) -> tuple[Array, Array, Array]:
    """InputParametersTensor {D0, ...}, InputFirstMomentTensor {D0, ...},
    InputSecondMomentTensor {D0, ...}, GradientTensor {D0, ...}, TrainingStepTensor {1, ...} ->
    OutputParametersTensor {D0, ...}, OutputFirstMomentTensor {D0, ...},
    OutputSecondMomentTensor {D0, ...}; FLOAT32, FLOAT16; TrainingStepTensor: UINT32

    Return the parameters X and the moments M and V of their gradient G after one step of Adam.

    With the number T of the step:

        M = Beta1 M + (1 - Beta1) G
        V = Beta2 V + (1 - Beta2) G G
        Alpha = sqrt(1 - Beta2^T) / (1 - Beta1^T), or 1 in step 0
        X = X - LearningRate Alpha M / (sqrt(V) + Epsilon)

    Infinite moments become NaN.

    Source: the page of DML_ADAM_OPTIMIZER_OPERATOR_DESC; step 0 and infinities were measured.
    """

    def updated_m(m: Array, g: Array) -> Array:
        return _moved(m, g.astype(np.float64), single(desc.Beta1))

    def updated_v(v: Array, g: Array) -> Array:
        return _moved(v, np.square(g, dtype=np.float64), single(desc.Beta2))

    def updated_x(x: Array, m: Array, v: Array, g: Array) -> Array:
        divisor = np.sqrt(updated_v(v, g)) + single(desc.Epsilon)
        parameters: Array = x - rate * updated_m(m, g) / divisor
        return parameters

    x, m, v = desc.InputParametersTensor, desc.InputFirstMomentTensor, desc.InputSecondMomentTensor
    g, dtype = desc.GradientTensor, desc.OutputParametersTensor.DataType.dtype
    with np.errstate(all="ignore"):
        alpha, _, _ = _alpha(desc)
        rate = single(desc.LearningRate) * alpha
        return (
            in_blocks(updated_x, x, m, v, g, dtype=dtype),
            in_blocks(updated_m, m, g, dtype=dtype),
            in_blocks(updated_v, v, g, dtype=dtype),
        )


@of_fields(AdamOptimizerDesc)
def adam_optimizer_interval(desc: AdamOptimizerDesc) -> tuple[tuple[Array, Array], ...]:
    """Return the parameters and moments that roundings, and the errors of powers, permit.

    The moments may be rounded to their type before the parameters are computed.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp, log, sqrt).
    """
    dtype = desc.OutputParametersTensor.DataType.dtype
    epsilon = single(desc.Epsilon)
    with np.errstate(all="ignore"):
        moments = _moments(desc)
        m, v, m_error, v_error = moments
        alpha, least_alpha, greatest_alpha = _alpha(desc)
        rate = single(desc.LearningRate)
        steps = rate * alpha * m / (np.sqrt(v) + epsilon)
        m_room, least, most = _stored(moments, dtype)
        numerator = np.abs(m)
        divisors = [
            (np.sqrt(end) * (1 + sign * 2 * STEP) + epsilon) * (1 + sign * STEP)
            for end, sign in ((least, -1), (most, 1))
        ]
        longest = abs(rate) * greatest_alpha * (numerator + m_room) / np.abs(divisors).min(0)
        shortest = abs(rate) * least_alpha * (numerator - m_room) / np.abs(divisors).max(0)
        errors = longest * (1 + 4 * STEP) - np.abs(steps), np.abs(steps) - shortest * (1 - 4 * STEP)
        parameters = desc.InputParametersTensor - steps
        # Where the divisor may be 0 but need not, a step may have any length and either sign.
        undefined = (divisors[0] <= 0) & (divisors[1] >= 0) & (divisors[0] != divisors[1])
        overflowing = np.isinf(m_error) | np.isinf(v_error)
        # A negative number has no logarithm, and Alpha may be infinite.
        undefined |= not (0 <= desc.Beta1 <= 1 and 0 <= desc.Beta2 <= 1 and np.isfinite(alpha))
        return (
            _undefined(
                rounded_interval(parameters, np.maximum(*errors), dtype),
                overflowing | undefined,
            ),
            _undefined(rounded_interval(m, m_error, dtype), np.isinf(m_error)),
            _undefined(_not_negative(rounded_interval(v, v_error, dtype), desc), np.isinf(v_error)),
        )


def _undefined(interval: tuple[Array, Array], where: Array) -> tuple[Array, Array]:
    """Return the interval, with any number in it if the result is not defined."""
    lowest, highest = interval
    lowest[where], highest[where] = -np.inf, np.inf
    return lowest, highest


def _not_negative(interval: tuple[Array, Array], desc: AdamOptimizerDesc) -> tuple[Array, Array]:
    """Return the interval of V without negative numbers, which no rounding makes.

    `V + (1 - Beta2) (G G - V)` is not negative either, since no difference is less than -V.
    """
    lowest, highest = interval
    possible = (desc.InputSecondMomentTensor >= 0) & (0 <= desc.Beta2 <= 1)
    return np.where(possible & (lowest < 0), lowest.dtype.type(0), lowest), highest


def _moments(desc: AdamOptimizerDesc) -> _Moments:
    """Return the updated moments, and what kernels may be off: infinitely where they overflow.

    They are `M + (1 - Beta) * (G - M)`, or as the page has it `Beta * M + (1 - Beta) * G`; every
    step is rounded.
    """
    slopes = desc.GradientTensor.astype(np.float64)
    values, errors = [], []
    for old, new, decay in (
        (desc.InputFirstMomentTensor.astype(np.float64), slopes, single(desc.Beta1)),
        (desc.InputSecondMomentTensor.astype(np.float64), slopes * slopes, single(desc.Beta2)),
    ):
        share = 1 - decay
        value = _moved(old, new, decay)
        of_new, of_share = _underflow(new), _underflow(share)
        of_difference = of_new + _of_difference(new, old)
        of_product = abs(share) * of_difference + np.abs(new - old) * of_share
        of_sum = of_product + _underflow(share * (new - old))
        of_product = abs(share) * of_new + np.abs(new) * of_share
        of_terms = of_product + _underflow(share * new) + _underflow(decay * old)
        error = np.maximum(of_sum, of_terms)
        values.append(value)
        largest = (np.abs(new) + np.abs(old)) * max(1.0, abs(share), abs(decay))
        overflowing = np.isfinite(largest) & (largest > _LARGEST)
        error += np.where(error > 0, STEP * np.abs(value), _underflow(value))
        errors.append(np.where(overflowing, np.inf, error))
    return _Moments(*values, *errors)


def _stored(moments: _Moments, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return how far M may be off, and the least and the greatest V.

    They may be rounded to their type, which may hold V as its largest number, or as infinity.
    """
    info = np.finfo(dtype)
    relative = STEP if dtype == np.float32 else float(info.eps)
    step, largest = float(info.smallest_subnormal), float(info.max)
    m_room = np.abs(moments.m) * relative + moments.m_error
    v_room = np.abs(moments.v) * relative + moments.v_error
    if dtype == np.float16:
        m_room, v_room = m_room + step, v_room + step
    least = np.minimum(np.maximum(moments.v - v_room, 0), largest)
    most = moments.v + v_room
    return m_room, least, np.where(most > largest, np.inf, np.maximum(most, 0))


def _moved(old: Array, new: Array, decay: float) -> Array:
    """Return `decay * old + (1 - decay) * new`, NaN where the old value is infinite.

    Measured: DirectML computes `old + (1 - decay) * (new - old)`, which makes NaN of infinity,
    unless the decay exceeds 1, and 0 of the moment 1 and the square 2^-54 where the decay is 0.
    """
    if not np.isfinite(decay):
        # By the page infinities cancel; by the difference they do not.
        return old + (1 - decay) * (new - old)
    moment = decay * old.astype(np.float64) + (1 - decay) * new
    return np.where(np.isinf(old), old + (1 - decay) * (new - old), moment)


def _alpha(desc: AdamOptimizerDesc) -> tuple[float, float, float]:
    """Return Alpha, which corrects the bias of the moments, and the least and the greatest one."""
    count = float(desc.TrainingStepTensor.ravel()[0])
    if count == 0:
        return 1.0, 1.0, 1.0
    (first, first_error), (second, second_error) = (
        _one_less_power(single(beta), count) for beta in (desc.Beta1, desc.Beta2)
    )
    exact = np.float64(np.sqrt(second)) / first
    greatest = np.sqrt(second + second_error) / np.maximum(first - first_error, 0)
    least = np.sqrt(np.maximum(second - second_error, 0)) / (first + first_error)
    return float(exact), float(least * (1 - 4 * STEP)), float(greatest * (1 + 4 * STEP))


def _one_less_power(base: float, exponent: float) -> tuple[Any, Any]:
    """Return `1 - base ** exponent` and its error where powers are made of log2 and exp2."""
    power = np.float64(base) ** exponent
    logarithm = np.log2(np.float64(base))
    if not np.isfinite(logarithm):
        return 1 - power, np.float64(0)
    size = abs(logarithm)
    error_of_argument = exponent * (max(1.0, size) * LOG2_ERROR + 2 * STEP * size)
    error = np.exp2(exponent * logarithm + error_of_argument) - power + power * EXP2_ERROR
    return 1 - power, error + STEP * np.abs(1 - power)


def _of_difference(new: Array, old: Array) -> Array:
    """Return how much rounding may take from `new - old`, of which FLOAT64 may lose digits too.

    Source: Knuth, The Art of Computer Programming, volume 2, 4.2.2: the error of a sum.
    """
    difference = new - old
    share = difference - new
    lost = (new - (difference - share)) - (old + share)
    error: Array = np.where(lost == 0, _underflow(difference), np.abs(difference) * STEP)
    return error


def _underflow(value: Any) -> Any:
    """Return how much rounding may take from FLOAT64 numbers that FLOAT32 does not hold."""
    held = np.float32(value) == value
    return np.where(held, 0.0, np.abs(value) * STEP)
