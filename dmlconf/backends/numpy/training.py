"""Operators that update the weights of a model."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from dmlconf.backends.numpy.blocks import in_blocks
from dmlconf.backends.numpy.rounding import STEP, rounded_interval
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["adam_optimizer", "adam_optimizer_interval"]

_EXP2: Final = 2.0**-21
"""The relative error of exp2; of log2 as well, which is absolute for results below 1."""

_LARGEST: Final = float(np.finfo(np.float32).max)


class _Moments(NamedTuple):
    """Updated estimates of a gradient's moments, FLOAT64, and their errors."""

    first: Array
    second: Array
    first_error: Array
    second_error: Array


def adam_optimizer(
    InputParametersTensor: Array,
    InputFirstMomentTensor: Array,
    InputSecondMomentTensor: Array,
    GradientTensor: Array,
    TrainingStepTensor: Array,
    OutputParametersTensor: TensorDesc,
    OutputFirstMomentTensor: TensorDesc,
    OutputSecondMomentTensor: TensorDesc,
    LearningRate: float,
    Beta1: float,
    Beta2: float,
    Epsilon: float,
) -> tuple[Array, Array, Array]:
    """Return the parameters and the moments of their gradient after one step of Adam.

    In step 0 the moments' bias is not corrected. Infinite moments become NaN.

    Source: the page of DML_ADAM_OPTIMIZER_OPERATOR_DESC; step 0 and infinities were measured.
    """

    def first_moment(first: Array, gradient: Array) -> Array:
        return _moved(first, gradient.astype(np.float64), _exactly(Beta1))

    def second_moment(second: Array, gradient: Array) -> Array:
        return _moved(second, np.square(gradient, dtype=np.float64), _exactly(Beta2))

    def updated(parameters: Array, first: Array, second: Array, gradient: Array) -> Array:
        size = np.sqrt(second_moment(second, gradient)) + _exactly(Epsilon)
        found: Array = parameters - rate * first_moment(first, gradient) / size
        return found

    first, second = InputFirstMomentTensor, InputSecondMomentTensor
    gradient, dtype = GradientTensor, OutputParametersTensor.DataType.dtype
    with np.errstate(all="ignore"):
        rate = _exactly(LearningRate) * _correction(TrainingStepTensor, Beta1, Beta2)[0]
        return (
            in_blocks(updated, InputParametersTensor, first, second, gradient, dtype=dtype),
            in_blocks(first_moment, first, gradient, dtype=dtype),
            in_blocks(second_moment, second, gradient, dtype=dtype),
        )


def adam_optimizer_interval(
    InputParametersTensor: Array,
    InputFirstMomentTensor: Array,
    InputSecondMomentTensor: Array,
    GradientTensor: Array,
    TrainingStepTensor: Array,
    OutputParametersTensor: TensorDesc,
    OutputFirstMomentTensor: TensorDesc,
    OutputSecondMomentTensor: TensorDesc,
    LearningRate: float,
    Beta1: float,
    Beta2: float,
    Epsilon: float,
) -> tuple[tuple[Array, Array], ...]:
    """Return what roundings, and the errors of powers, may make of parameters and moments.

    The moments may be rounded to their type before the parameters are computed.

    Source: Direct3D 11.3 functional specification, 3.1 (rounding) and 22.10 (exp, log, sqrt).
    """
    dtype = OutputParametersTensor.DataType.dtype
    epsilon = _exactly(Epsilon)
    with np.errstate(all="ignore"):
        moments = _moments(
            InputFirstMomentTensor, InputSecondMomentTensor, GradientTensor, Beta1, Beta2
        )
        first, second, first_error, second_error = moments
        correction, least_correction, greatest = _correction(TrainingStepTensor, Beta1, Beta2)
        rate = _exactly(LearningRate)
        steps = rate * correction * first / (np.sqrt(second) + epsilon)
        first_room, least, most = _stored(moments, dtype)
        numerator = np.abs(first)
        divisors = [
            (np.sqrt(end) * (1 + sign * 2 * STEP) + epsilon) * (1 + sign * STEP)
            for end, sign in ((least, -1), (most, 1))
        ]
        longest = abs(rate) * greatest * (numerator + first_room) / np.abs(divisors).min(0)
        shortest = abs(rate) * least_correction * (numerator - first_room) / np.abs(divisors).max(0)
        errors = longest * (1 + 4 * STEP) - np.abs(steps), np.abs(steps) - shortest * (1 - 4 * STEP)
        parameters = InputParametersTensor - steps
        # Where the divisor may be 0 but need not, a step may have any length and either sign.
        undefined = (divisors[0] <= 0) & (divisors[1] >= 0) & (divisors[0] != divisors[1])
        overflowing = np.isinf(first_error) | np.isinf(second_error)
        # A negative number has no logarithm, and the correction may be infinite.
        undefined |= not (0 <= Beta1 <= 1 and 0 <= Beta2 <= 1 and np.isfinite(correction))
        return (
            _undefined(
                rounded_interval(parameters, np.maximum(*errors), dtype),
                overflowing | undefined,
            ),
            _undefined(rounded_interval(first, first_error, dtype), np.isinf(first_error)),
            _undefined(rounded_interval(second, second_error, dtype), np.isinf(second_error)),
        )


def _undefined(interval: tuple[Array, Array], where: Array) -> tuple[Array, Array]:
    """Return the interval, with any number in it where nothing is defined."""
    lowest, highest = interval
    lowest[where], highest[where] = -np.inf, np.inf
    return lowest, highest


def _moments(first: Array, second: Array, gradient: Array, beta1: float, beta2: float) -> _Moments:
    """Return the updated moments, and what kernels may be off: infinitely where they overflow.

    They are `M + (1 - Beta) * (G - M)`, or as the page has it `Beta * M + (1 - Beta) * G`; every
    step is rounded.
    """
    slopes = gradient.astype(np.float64)
    values, errors = [], []
    for old, new, decay in (
        (first.astype(np.float64), slopes, _exactly(beta1)),
        (second.astype(np.float64), slopes * slopes, _exactly(beta2)),
    ):
        share = 1 - decay
        value = _moved(old, new, decay)
        of_new, of_share = _lost(new), _lost(share)
        of_product = abs(share) * (of_new + _lost(new - old)) + np.abs(new - old) * of_share
        of_sum = of_product + _lost(share * (new - old))
        of_product = abs(share) * of_new + np.abs(new) * of_share
        of_terms = of_product + _lost(share * new) + _lost(decay * old)
        error = np.maximum(of_sum, of_terms)
        values.append(value)
        largest = (np.abs(new) + np.abs(old)) * max(1.0, abs(share), abs(decay))
        overflowing = np.isfinite(largest) & (largest > _LARGEST)
        error += np.where(error > 0, STEP * np.abs(value), _lost(value))
        errors.append(np.where(overflowing, np.inf, error))
    return _Moments(*values, *errors)


def _stored(moments: _Moments, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return how far the first moment may be off, and the least and the greatest second one.

    They may be rounded to their type, which may hold the second one as its largest number, or as
    infinity.
    """
    info = np.finfo(dtype)
    relative = STEP if dtype == np.float32 else float(info.eps)
    step, largest = float(info.smallest_subnormal), float(info.max)
    room = np.abs(moments.first) * relative + moments.first_error
    second_room = np.abs(moments.second) * relative + moments.second_error
    if dtype == np.float16:
        room, second_room = room + step, second_room + step
    least = np.minimum(np.maximum(moments.second - second_room, 0), largest)
    most = moments.second + second_room
    return room, least, np.where(most > largest, np.inf, np.maximum(most, 0))


def _moved(old: Array, new: Array, decay: float) -> Array:
    """Return a moment of which a new value takes the share that the decay leaves."""
    moment: Array = old + (1 - decay) * (new - old)
    return moment


def _correction(step: Array, beta1: float, beta2: float) -> tuple[float, float, float]:
    """Return by how much the bias of the moments changes the rate, at least and at most too."""
    count = float(step.ravel()[0])
    if count == 0:
        return 1.0, 1.0, 1.0
    (first, first_error), (second, second_error) = (
        _one_less_power(_exactly(beta), count) for beta in (beta1, beta2)
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
    error_of_argument = exponent * (max(1.0, size) * _EXP2 + 2 * STEP * size)
    error = np.exp2(exponent * logarithm + error_of_argument) - power + power * _EXP2
    return 1 - power, error + STEP * np.abs(1 - power)


def _lost(value: Any) -> Any:
    """Return how much rounding may take from FLOAT64 numbers that FLOAT32 does not hold."""
    held = np.float32(value) == value
    return np.where(held, 0.0, np.abs(value) * STEP)


def _exactly(value: float) -> float:
    """Return the FLOAT32 number that DirectML takes."""
    return float(np.float32(value))
