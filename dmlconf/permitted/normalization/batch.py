"""Permitted errors of BATCH_NORMALIZATION and BATCH_NORMALIZATION_TRAINING.

Variables named `steps` hold the errors of single operations besides a long sum: the sizes of their
results, each times the half ULPs that the operation may be off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

from dmlconf.permitted.activation.fused import fused_error_scale, fused_span
from dmlconf.permitted.normalization.mean_variance import (
    exact_mean,
    root_of_either_sign,
    saturated,
    variance_loss,
)
from dmlconf.permitted.normalization.overflows import (
    Normalization,
    only_overflowing_to,
    sides_of_products,
    sides_of_sums,
)
from dmlconf.permitted.normalization.parameters import (
    cancellation_of,
    of_rounding_alone,
    partial_mean,
    quotient_scale,
    unbounded,
    variance_overflows,
)
from dmlconf.permitted.normalization.spans import Statistics
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.permitted.numbers.rounding import (
    HALF_STEP,
    STEP,
    finite_sum,
    greatest_product,
    overflows,
    sizes_of,
    underflow_error,
)
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
from dmlconf.tensors.float_limits import FLOAT16_EPSILON, LEAST_NORMAL_FLOAT32

__all__ = [
    "batch_normalization_error_scale",
    "batch_normalization_training_error_scale",
]

_TERMS: Final = 6
"""The number of terms in the precision rule of BATCH_NORMALIZATION, `products` in the catalogue."""


@of_fields(BatchNormalizationDesc)
def batch_normalization_error_scale(desc: BatchNormalizationDesc) -> ErrorScale:
    """Return the error scale of `(x - mean) * scale / sqrt(variance + Epsilon) + bias`.

    FusedActivation is included.

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
        error_scale = ErrorScale(sizes[0] + sizes[1]).at_most(steps_beside_sum(steps, _TERMS))
        # A subnormal quotient of scale and deviation has few digits, or is flushed to 0.
        fewer_digits = underflow_error(wide(desc.InputTensor) - mean, scale, 1 / deviation)
        error_scale += ErrorScale(fewer_digits / STEP)
        error_scale = error_scale.growing(np.abs(factor), values)
        error_scale = error_scale.overflowing_where(
            overflows(greatest_product(added, scale, 1 / deviation))
        )
        # Measured: kernels add x * factor and bias - mean * factor. Opposite infinities make NaN.
        for part in (mean, wide(desc.InputTensor)):
            error_scale = error_scale.overflowing_where(
                np.isinf(values) & overflows(greatest_product(np.abs(part), scale, 1 / deviation))
            )
        # Measured on BATCH_NORMALIZATION_TRAINING only: the factor multiplies input and mean before
        # they are subtracted. An infinite factor then makes NaN of an input or a mean of 0.
        infinite = unbounded(factor, deviation) | overflows(np.abs(factor))
        error_scale = error_scale.overflowing_where(infinite)
        infinite_variance = variance_overflows(desc.VarianceTensor, desc.Epsilon)
        if desc.FusedActivation is None:
            terms = wide(desc.InputTensor), -mean
            # An infinite difference or quotient times a factor of 0 is NaN.
            either = infinite | (np.minimum(np.abs(scale), np.abs(factor)) < LEAST_NORMAL_FLOAT32)
            either |= infinite_variance
            by_sign = sides_of_products(terms, scale, 1 / deviation, [bias], either)
            error_scale = replace(error_scale, by_sign=by_sign)
        dtype = desc.OutputTensor.DataType.dtype
        # Measured: FLOAT16 holds the argument of an activation, and nothing before it.
        error_scale = fused_error_scale(
            values, error_scale, desc.FusedActivation, dtype, only_sums=dtype == np.float16
        )
        if infinite_variance.any():
            of_bias = fused(np.where(infinite_variance, bias, values), desc.FusedActivation)
            error_scale = error_scale.with_others([of_bias], dtype)
        # Elements with one variance, such as those of a channel, share a root and its errors.
        return replace(error_scale, sums_shared=True)


@of_fields(BatchNormalizationTrainingDesc)
def batch_normalization_training_error_scale(
    desc: BatchNormalizationTrainingDesc,
) -> tuple[ErrorScale, ErrorScale, ErrorScale]:
    """Return the error scales of the three outputs: the normalised values, means and variances.

    Derived in docs/bounds.md, Normalisation.
    """
    over = shared_dimensions(desc.ScaleTensor)
    dtype = desc.OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        moments = _Moments.of(desc.InputTensor, over, desc.Epsilon)
        of_mean, of_variance = _mean_error_scale(moments), _variance_error_scale(moments, dtype)
        values, error_scale = _sum_error_scale(desc, moments)
        error_scale = fused_error_scale(values, error_scale, desc.FusedActivation, dtype)
        if desc.FusedActivation is None:
            error_scale = _steps_of(desc, moments).limited(error_scale, values)
        quotients = saturated(
            moments.centred,
            moments.variance,
            moments.squares.sum(over, keepdims=True),
            desc.Epsilon,
            dtype,
        )
        if dtype == np.float16:
            spans = _training_spans(desc, over, moments.exact)
            error_scale = error_scale.spanned(
                *(fused_span(span, desc.FusedActivation) for span in spans)
            )
        if dtype == np.float16 and 0 in over and len(over) > 1:
            mean, variance, quotient = _batches_first(desc.InputTensor, over, desc.Epsilon)
            quotients.append(quotient)
            of_mean = replace(of_mean, others=(mean,))
            of_variance = replace(of_variance, others=(variance,))
        undefined = of_rounding_alone(moments.partial, moments.deviation, moments.count)
        if desc.Epsilon < 0 and dtype == np.float16:
            undefined = undefined | root_of_either_sign(
                desc.InputTensor, over, moments.variance, desc.Epsilon
            )
        return (
            replace(
                error_scale.open_where(undefined).with_others(
                    (_output_of(desc, quotient) for quotient in quotients), dtype
                ),
                sums_shared=True,
            ),
            replace(of_mean, terms_vary=terms_vary(desc.InputTensor, over)),
            replace(of_variance, terms_vary=terms_vary(moments.squares, over)),
        )


@dataclass(frozen=True, slots=True)
class _Moments:
    """Mean and variance of the elements, and the sizes that their errors follow from, in FLOAT64.

    Attributes:
        over: the dimensions in which elements share a mean and a variance; all arrays but `size`,
            `centred` and `squares` have size 1 there.
        count: how many elements share a mean.
        mean_size: the means of the elements' absolute values.
        partial: what `partial_mean` returns for the elements.
        exact: which means are the same in every order of additions (`exact_mean`).
        overflows: for which means the sum of the elements may overflow.
        size: `|x| + mean_size` for each element x.
        centred: `x - mean`; `squares` has the squares of these differences.
        values: the elements x.
        deviation: `sqrt(variance + Epsilon)`.
    """

    values: Array
    over: tuple[int, ...]
    count: int
    mean: Array
    mean_size: Array
    partial: Array
    exact: Array
    overflows: Array
    size: Array
    centred: Array
    squares: Array
    variance: Array
    deviation: Array

    @classmethod
    def of(cls, tensor: Array, over: tuple[int, ...], epsilon: float) -> _Moments:
        """Return the moments of elements along some dimensions, for an operator's epsilon."""
        count = math.prod(tensor.shape[axis] for axis in over)
        values, sizes = wide(tensor), sizes_of(tensor)
        mean = values.mean(over, keepdims=True)
        mean_size = sizes.mean(over, keepdims=True)
        centred = values - mean
        squares = np.square(centred)
        variance = squares.mean(over, keepdims=True)
        return cls(
            values=values,
            over=over,
            count=count,
            mean=mean,
            mean_size=mean_size,
            partial=partial_mean(values, over),
            exact=exact_mean(tensor, mean, mean_size * count),
            overflows=overflows(finite_sum(sizes, over, keepdims=True)),
            size=sizes + mean_size,
            centred=centred,
            squares=squares,
            variance=variance,
            deviation=deviation_of(variance, epsilon),
        )


def _mean_error_scale(moments: _Moments) -> ErrorScale:
    error_scale = ErrorScale(moments.mean_size, overflows=moments.overflows)
    steps = 2 * moments.mean_size
    error_scale = error_scale.at_most(moments.partial + steps_beside_sum(steps, moments.count))
    sides = sides_of_sums(moments.values, moments.over)
    nan = np.zeros((), bool)
    return only_overflowing_to(error_scale, sides, nan, moments.mean, np.dtype(np.float64))


def _variance_error_scale(moments: _Moments, dtype: np.dtype[Any]) -> ErrorScale:
    # If the mean is rounded to FLOAT16, each difference from it moves, and the move is squared.
    of_mean = np.square(moments.mean) * FLOAT16_EPSILON
    centred = np.abs(moments.centred)
    cancellation = 8 * STEP * np.square(moments.size)
    spread = moments.squares + 2 * centred * moments.size + cancellation
    error_scale = ErrorScale(
        spread.mean(moments.over, keepdims=True), of_mean, overflows=moments.overflows
    )
    centred_size = centred.mean(moments.over, keepdims=True)
    error_scale = error_scale.at_most(
        _variance_scale(moments.variance, centred_size, moments.partial, moments.count)
    )
    # Squares are positive. NaN comes from an infinite mean, from infinite differences of both signs
    # or, in kernels that subtract it, from the infinite square of a mean.
    square = np.square(moments.mean)
    sides = -square if dtype == np.float16 else np.zeros_like(square), np.full_like(square, np.inf)
    nan = moments.overflows | overflows(square)
    nan |= overflows(moments.size).any(moments.over, keepdims=True)
    return only_overflowing_to(error_scale, sides, nan, moments.variance, dtype)


def _quotient_error_scale(desc: BatchNormalizationTrainingDesc, moments: _Moments) -> ErrorScale:
    variance, deviation = moments.variance, moments.deviation
    quotient = np.abs(moments.centred) / deviation
    # A negative Epsilon makes the relative error of the sum greater, and the root halves it.
    of_root = (cancellation_of(variance, desc.Epsilon) - 1) / 2
    sizes = moments.size / deviation + (3 + of_root) * quotient
    error_scale = ErrorScale(sizes, _stored_sizes(moments, quotient))
    factors = alike(desc.InputTensor, moments.over), alike(moments.squares, moments.over)
    parts = sizes_of(desc.InputTensor), moments.partial, moments.centred, variance, deviation
    error_scale = error_scale.at_most(quotient_scale(*parts, moments.count, factors))
    dtype = desc.OutputTensor.DataType.dtype
    return error_scale + variance_loss(quotient, variance, desc.Epsilon, dtype)


def _stored_sizes(moments: _Moments, quotient: Array) -> Array:
    """Return the sum of the sizes of the FLOAT16 stores on the way to `(x - mean) / deviation`.

    Kernels may store the mean, `x - mean`, the variance, its root and the quotient. Each size is
    multiplied by the derivative of the quotient with respect to the stored number.
    """
    deviation = moments.deviation
    held = store_sizes(moments.mean, moments.exact)
    held = held + store_sizes(moments.centred, moments.exact & (held == 0))
    root = store_sizes(deviation) + 0.5 * store_sizes(moments.variance) / deviation
    of_quotient: Array = held / deviation + quotient * (root / deviation + 1)
    return of_quotient


def _sum_error_scale(
    desc: BatchNormalizationTrainingDesc, moments: _Moments
) -> tuple[Array, ErrorScale]:
    """Return `(x - mean) * scale / deviation + bias + add`, FLOAT64, and its error scale."""
    factor = wide(desc.ScaleTensor) / moments.deviation
    values = moments.centred * factor + wide(desc.BiasTensor)
    error_scale = _quotient_error_scale(desc, moments).scaled(desc.ScaleTensor)
    error_scale = error_scale.growing(np.abs(factor), moments.centred * factor)
    scales = wide(desc.ScaleTensor), 1 / moments.deviation
    error_scale += ErrorScale(underflow_error(moments.centred, *scales) / STEP)
    bias = sizes_of(desc.BiasTensor)
    error_scale = error_scale.overflowing_where(overflows(error_scale.sums + bias))
    error_scale += ErrorScale(np.fmin(bias, steps_beside_sum(4 * bias, moments.count)))
    if desc.FusedAddTensor is not None:
        added = ErrorScale(2 * sizes_of(desc.FusedAddTensor))
        error_scale = error_scale.holding(store_sizes(values)) + added
        values += desc.FusedAddTensor
    intermediate = np.fmax(
        greatest_product(moments.size, desc.ScaleTensor, 1 / moments.deviation),
        moments.squares.sum(moments.over, keepdims=True),
    )
    error_scale = error_scale.overflowing_where(overflows(intermediate) | moments.overflows)
    error_scale = error_scale.overflowing_where(unbounded(factor, moments.deviation))
    return values, error_scale.overflowing_where(overflows(np.abs(factor)))


def _steps_of(desc: BatchNormalizationTrainingDesc, moments: _Moments) -> Normalization:
    added = [wide(desc.BiasTensor)]
    if desc.FusedAddTensor is not None:
        added.append(wide(desc.FusedAddTensor))
    return Normalization(
        values=moments.values,
        mean=moments.mean,
        over=moments.over,
        scale=wide(desc.ScaleTensor),
        deviation=moments.deviation,
        added=added,
        dtype=desc.OutputTensor.DataType.dtype,
    )


def _output_of(desc: BatchNormalizationTrainingDesc, quotient: Array) -> Array:
    added = 0.0 if desc.FusedAddTensor is None else wide(desc.FusedAddTensor)
    values = quotient * wide(desc.ScaleTensor) + (wide(desc.BiasTensor) + added)
    output: Array = fused(values, desc.FusedActivation).astype(desc.OutputTensor.DataType.dtype)
    return output


def _batches_first(
    tensor: Array, over: tuple[int, ...], epsilon: float
) -> tuple[Array, Array, Array]:
    """Return means, variances and quotients of a kernel that averages over dimension 0 first.

    Means and variances are FLOAT16, and quotients FLOAT64.

    Measured: DirectML 1.8.0 averages the elements that differ only in their batch, stores these
    averages in FLOAT16, truncated, and averages them along the other dimensions.
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


_PRODUCTS: Final = 4 * HALF_STEP
"""The error of `x * factor - mean * factor`, as a share of `(|x| + |mean|) * factor`: HALF_STEP for
the mean, for each product and for the difference."""


def _training_spans(
    desc: BatchNormalizationTrainingDesc, over: tuple[int, ...], exact: Array
) -> Iterator[Span]:
    """Yield a span of the output before FusedActivation for each way to store mean and variance.

    A kernel may also store in FLOAT16 `(x - mean) / deviation`, its product with the scale,
    `scale / deviation`, and the sum with the bias before it adds FusedAddTensor.

    With `factor = scale / deviation`, a kernel may compute `x * factor - mean * factor` instead.
    Measured on DirectML 1.13.1: where x is the mean, the sum may be less than the bias.
    """
    add, scale = desc.FusedAddTensor, wide(desc.ScaleTensor)
    values = wide(desc.InputTensor)
    statistics = Statistics.of(values, over, exact)
    sizes = np.abs(values) + np.abs(values).mean(over, keepdims=True)
    for centred, inverse in product(statistics.differences, statistics.inverse_roots(desc.Epsilon)):
        factor = (inverse * scale).rounded()
        factor = factor.or_any([factor.held()])
        quotient = (centred * inverse).rounded()
        scaled = (centred * factor).rounded()
        scaled = scaled.or_any([(quotient.held() * scale).rounded()]).held()
        of_products = np.fmax(*map(np.abs, factor.ends)) * sizes * _PRODUCTS
        scaled = scaled.or_any([(centred * factor).widened(of_products)])
        total = scaled + wide(desc.BiasTensor)
        yield total if add is None else total.held() + wide(add)


def _variance_scale(variance: Array, centred: Array, mean: Array, terms: int) -> Array:
    """Return the error scale of a variance.

    Args:
        centred: the mean of `|x - mean|` over the elements x.
        mean: what `partial_mean` returns for the elements.

    Derived in docs/bounds.md, Normalisation.
    """
    steps = 10 * variance + 4 * centred * mean + 16 * (variance + np.square(mean))
    of_mean = roundings(terms) * STEP / 2 * np.square(mean)
    # A kernel may add up squares of the elements, and subtract the square of the mean.
    of_squares = 0.5 * (variance + np.square(mean))
    scale: Array = variance + of_mean + of_squares + steps_beside_sum(steps, terms)
    return scale
