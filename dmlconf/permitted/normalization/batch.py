"""How far batch normalization may be from the reference's outputs.

Derived in docs/bounds.md, Normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from dmlconf.permitted.activation.fused import fused_error_scale, fused_span
from dmlconf.permitted.normalization.mean_variance import exact_mean, saturated, variance_loss
from dmlconf.permitted.normalization.parameters import (
    finite_sum,
    of_rounding_alone,
    partial_mean,
    quotient_scale,
    sizes_of,
    unbounded,
)
from dmlconf.permitted.normalization.spans import Statistics
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.permitted.numbers.rounding import STEP, greatest_product, overflows
from dmlconf.permitted.numbers.span import Span
from dmlconf.permitted.numbers.terms import alike, steps_beside_sum, terms_vary
from dmlconf.precision.accumulation import roundings
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.fields import of_fields
from dmlconf.reference.normalization.batch import (
    BatchNormalizationDesc,
    BatchNormalizationTrainingDesc,
)
from dmlconf.reference.normalization.parameters import deviation_of, shared_dimensions
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import FLOAT16_EPSILON

__all__ = [
    "batch_normalization_error_scale",
    "batch_normalization_training_error_scale",
]

_STEPS: Final = 6
"""What the rule of BATCH_NORMALIZATION counts as terms."""


@of_fields(BatchNormalizationDesc)
def batch_normalization_error_scale(desc: BatchNormalizationDesc) -> ErrorScale:
    """Return the error scale of `(x - mean) * scale / sqrt(variance + Epsilon) + bias`.

    Derived in docs/bounds.md, Normalisation.
    """
    with np.errstate(all="ignore"):
        scale, deviation = wide(desc.ScaleTensor), deviation_of(desc.VarianceTensor, desc.Epsilon)
        factor = scale / deviation
        mean, bias = wide(desc.MeanTensor), wide(desc.BiasTensor)
        values = (wide(desc.InputTensor) - mean) * factor + bias
        added = sizes_of(desc.InputTensor) + np.abs(mean)
        product = np.abs((wide(desc.InputTensor) - mean) * factor)
        sizes = added * np.abs(factor), np.abs(bias)
        steps = 4 * sizes[0] + 14 * product + 4 * sizes[1]
        error_scale = ErrorScale(sizes[0] + sizes[1]).at_most(steps_beside_sum(steps, _STEPS))
        error_scale = error_scale.overflowing_where(
            overflows(greatest_product(added, scale, 1 / deviation))
        )
        # An infinite factor may be applied to the input and to the mean before their difference.
        error_scale = error_scale.overflowing_where(unbounded(factor, deviation))
        # BATCH_NORMALIZATION_TRAINING makes NaN of an input that is the mean so; not tried here.
        error_scale = error_scale.overflowing_where(overflows(np.abs(factor)))
        dtype = desc.OutputTensor.DataType.dtype
        error_scale = fused_error_scale(values, error_scale, desc.FusedActivation, dtype)
        # A channel's elements take the errors of one root and quotient.
        return replace(error_scale, sums_shared=True)


@of_fields(BatchNormalizationTrainingDesc)
def batch_normalization_training_error_scale(
    desc: BatchNormalizationTrainingDesc,
) -> tuple[ErrorScale, ErrorScale, ErrorScale]:
    """Return the error scales of the steps to each of the three outputs.

    Derived in docs/bounds.md, Normalisation.
    """
    over = shared_dimensions(desc.ScaleTensor)
    dtype = desc.OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        size = sizes_of(desc.InputTensor)
        mean_size = size.mean(over, keepdims=True)
        of_sum = overflows(finite_sum(size, over))
        size += mean_size
        centred = wide(desc.InputTensor)
        partial = partial_mean(centred, over)
        mean = centred.mean(over, keepdims=True)
        centred -= mean
        squares = np.square(centred)
        variance = squares.mean(over, keepdims=True)
        # The mean's own rounding moves every element, and is squared; FLOAT16 may hold it.
        of_mean = np.square(mean) * FLOAT16_EPSILON
        cancellation = 8 * STEP * np.square(size)
        spread = (squares + 2 * np.abs(centred) * size + cancellation).mean(over, keepdims=True)
        count = math.prod(desc.InputTensor.shape[axis] for axis in over)
        centred_size = np.abs(centred).mean(over, keepdims=True)
        of_variance = ErrorScale(spread, of_mean, overflows=of_sum).at_most(
            _variance_scale(variance, centred_size, partial, count)
        )
        of_sums = ErrorScale(mean_size, overflows=of_sum)
        of_sums = of_sums.at_most(partial + steps_beside_sum(2 * mean_size, count))
        deviation = deviation_of(variance, desc.Epsilon)
        quotient = np.abs(centred) / deviation
        # Measured: FLOAT16 holds the mean, the differences from it, their variance and its root.
        exact = exact_mean(desc.InputTensor, mean, mean_size * (desc.InputTensor.size // mean.size))
        held = store_sizes(mean, exact)
        held = held + store_sizes(centred, exact & (held == 0))
        held = held / deviation
        root = store_sizes(deviation) + 0.5 * store_sizes(variance) / deviation
        held = held + quotient * (root / deviation + 1)
        sizes = sizes_of(desc.InputTensor), partial, centred, variance, deviation
        undefined = of_rounding_alone(partial, deviation, count)
        error_scale = ErrorScale(size / deviation + 3 * quotient, held)
        factors = alike(desc.InputTensor, over), alike(squares, over)
        error_scale = error_scale.at_most(quotient_scale(*sizes, count, factors))
        error_scale += variance_loss(quotient, variance, desc.Epsilon, dtype)
        error_scale = error_scale.scaled(desc.ScaleTensor)
        bias = sizes_of(desc.BiasTensor)
        error_scale = error_scale.overflowing_where(overflows(error_scale.sums + bias))
        error_scale += ErrorScale(np.fmin(bias, steps_beside_sum(4 * bias, count)))
        factor = wide(desc.ScaleTensor) / deviation
        values = centred * factor + wide(desc.BiasTensor)
        if desc.FusedAddTensor is not None:
            error_scale = error_scale.holding(store_sizes(values)) + ErrorScale(
                2 * sizes_of(desc.FusedAddTensor)
            )
            values += desc.FusedAddTensor
        intermediate = np.fmax(
            greatest_product(size, desc.ScaleTensor, 1 / deviation),
            squares.sum(over, keepdims=True),
        )
        error_scale = error_scale.overflowing_where(overflows(intermediate) | of_sum)
        # As in BATCH_NORMALIZATION.
        error_scale = error_scale.overflowing_where(unbounded(factor, deviation))
        error_scale = error_scale.overflowing_where(overflows(np.abs(factor)))
        scale = fused_error_scale(values, error_scale, desc.FusedActivation, dtype)
        if dtype == np.float16:
            spans = _training_spans(
                desc.InputTensor,
                desc.ScaleTensor,
                desc.BiasTensor,
                desc.FusedAddTensor,
                over,
                exact,
                desc.Epsilon,
            )
            scale = scale.spanned(*(fused_span(span, desc.FusedActivation) for span in spans))
        added = wide(desc.BiasTensor) + (
            0.0 if desc.FusedAddTensor is None else wide(desc.FusedAddTensor)
        )
        quotients = saturated(
            centred, variance, squares.sum(over, keepdims=True), desc.Epsilon, dtype
        )
        if dtype == np.float16 and 0 in over and len(over) > 1:
            held_mean, held_variance, quotient = _batches_first(
                desc.InputTensor, over, desc.Epsilon
            )
            quotients.append(quotient)
            of_sums = replace(of_sums, others=(held_mean,))
            of_variance = replace(of_variance, others=(held_variance,))
        others = tuple(
            fused(quotient * wide(desc.ScaleTensor) + added, desc.FusedActivation).astype(dtype)
            for quotient in quotients
        )
        return (
            replace(scale.open_where(undefined), others=others, sums_shared=True),
            replace(of_sums, terms_vary=terms_vary(desc.InputTensor, over)),
            replace(of_variance, terms_vary=terms_vary(squares, over)),
        )


def _batches_first(
    tensor: Array, over: tuple[int, ...], epsilon: float
) -> tuple[Array, Array, Array]:
    """Return mean, variance and quotients of a kernel that first averages along the batches alone.

    Measured: DirectML 1.8.0 averages the elements that differ only in their batch, stores these
    averages in FLOAT16, truncated, and averages them along the other dimensions. A simulation gives
    all 24 means and variances of numbers up to 320 with the same bits.

    Args:
        tensor: the elements.
        over: the dimensions that share a mean, the batches among them.
        epsilon: the operator's.
    """
    rest = tuple(axis for axis in over if axis != 0)

    def averaged(values: Array) -> Array:
        of_batches = toward_zero(values.mean(0, keepdims=True))
        return toward_zero(of_batches.mean(rest, keepdims=True))

    mean = averaged(wide(tensor))
    centred = wide(tensor) - mean
    variance = averaged(np.square(centred))
    quotient = centred / deviation_of(variance, epsilon)
    return mean.astype(np.float16), variance.astype(np.float16), quotient


def _training_spans(
    tensor: Array,
    scale: Array,
    bias: Array,
    add: Array | None,
    over: tuple[int, ...],
    exact: Array,
    epsilon: float,
) -> Iterator[Span]:
    """Yield the spans of the output, one for each way of storing mean and variance in FLOAT16.

    A kernel may also store `(x - mean) / deviation`, its product with the scale, or
    `scale / deviation`; and the sum with the bias if something is added to it.
    """
    statistics = Statistics.of(wide(tensor), over, exact)
    for centred, inverse in product(statistics.differences, statistics.inverse_roots(epsilon)):
        factor = (inverse * wide(scale)).rounded()
        factor = factor.or_any([factor.held()])
        quotient = (centred * inverse).rounded()
        scaled = (centred * factor).rounded()
        scaled = scaled.or_any([(quotient.held() * wide(scale)).rounded()]).held()
        total = scaled + wide(bias)
        yield total if add is None else total.held() + wide(add)


def _variance_scale(variance: Array, centred: Array, mean: Array, terms: int) -> Array:
    """Return the error scale of a variance.

    Derived in docs/bounds.md, Normalisation.

    Args:
        variance: the variance, FLOAT64.
        centred: the mean size of the elements without their mean.
        mean: what `partial_mean` returns for the elements.
        terms: how many elements there are.
    """
    steps = 10 * variance + 4 * centred * mean + 16 * (variance + np.square(mean))
    of_mean = roundings(terms) * STEP / 2 * np.square(mean)
    # A kernel may add up squares of the elements, and subtract the square of the mean.
    of_squares = 0.5 * (variance + np.square(mean))
    scale: Array = variance + of_mean + of_squares + steps_beside_sum(steps, terms)
    return scale
