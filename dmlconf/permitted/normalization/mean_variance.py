"""Permitted errors of MEAN_VARIANCE_NORMALIZATION2, its special cases, and LP_NORMALIZATION.

`exact_mean`, `root_of_either_sign`, `saturated` and `variance_loss` also serve batch normalisation.

Derived in docs/bounds.md, Normalisation and Lp normalisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.activation.fused import activated_span, fused_error_scale, fused_span
from dmlconf.permitted.normalization.overflows import Normalization
from dmlconf.permitted.normalization.parameters import (
    cancellation_of,
    of_rounding_alone,
    partial_mean,
    quotient_scale,
)
from dmlconf.permitted.normalization.spans import Statistics
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.permitted.numbers.half import STORES, toward_zero
from dmlconf.permitted.numbers.passes import in_passes
from dmlconf.permitted.numbers.rounding import (
    ANY_RESULT,
    MOST_ROUNDINGS,
    STEP,
    greatest_product,
    overflows,
)
from dmlconf.permitted.numbers.span import Span
from dmlconf.permitted.numbers.terms import alike, steps_beside_sum
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.fields import of_fields
from dmlconf.reference.normalization.batch_gradients import elements_over
from dmlconf.reference.normalization.mean_variance import (
    MeanVarianceNormalization2Desc,
    squared_norm,
)
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import FLOAT16_EPSILON

__all__ = [
    "exact_mean",
    "lp_normalization_error_scale",
    "mean_variance_normalization2_error_scale",
    "root_of_either_sign",
    "saturated",
    "variance_loss",
]


@of_fields(MeanVarianceNormalization2Desc)
def mean_variance_normalization2_error_scale(desc: MeanVarianceNormalization2Desc) -> ErrorScale:
    """Return the error scale of `(x - mean) / sqrt(variance + Epsilon) * scale + bias`.

    FusedActivation is included. Without UseMean no mean is subtracted, and without UseVariance
    nothing is divided.

    Derived in docs/bounds.md, Normalisation.
    """
    over = tuple(sorted(set(desc.Axes)))
    with np.errstate(all="ignore"):
        centred = _centred(desc, over)
        normalized = (_divided if desc.UseVariance else _undivided)(desc, over, centred)
        scale = np.ones(1) if desc.ScaleTensor is None else np.abs(desc.ScaleTensor)
        products = _scaled(normalized.values, desc.ScaleTensor, None)
        error_scale = normalized.error_scale.scaled(scale)
        error_scale = error_scale.growing(normalized.growth * scale, products)
        beyond = overflows(centred.added) | overflows(normalized.largest)
        if np.isinf(scale).any():
            # Measured: -1 less a mean of -0.99999999 is 0, which an infinite scale makes NaN.
            beyond = beyond | (np.isinf(scale) & _zero_in_doubt(normalized))
        if desc.BiasTensor is not None:
            error_scale = error_scale.holding(store_sizes(products))
            bias = np.abs(wide(desc.BiasTensor))
            # Measured: a product that overflows beside an infinite bias of the other sign is NaN.
            beyond = beyond | overflows(error_scale.sums) | overflows(error_scale.sums + bias)
            count = elements_over(desc.InputTensor, over)
            error_scale += ErrorScale(np.fmin(bias, steps_beside_sum(4 * bias, count)))
        error_scale = error_scale.overflowing_where(beyond)
        return _activated(desc, over, centred, normalized, error_scale)


def _zero_in_doubt(normalized: _Normalized) -> Array:
    """Return which quotients may come out as 0, or not as 0, or with the other sign."""
    errors = normalized.error_scale
    reach = errors.sums * (MOST_ROUNDINGS * STEP)
    if errors.stored is not None:
        reach = reach + errors.stored * FLOAT16_EPSILON
    in_doubt: Array = (reach > 0) & (np.abs(normalized.values) <= reach)
    return in_doubt


@dataclass(frozen=True, slots=True)
class _Centred:
    """The elements x less their mean, or x itself without UseMean; numbers are FLOAT64.

    Attributes:
        terms: `|x| + mean(|x|)`, or `|x|` without UseMean.
        size: `|x|`.
        added: the sums of the finite `|x|`.
        partial: what `partial_mean` returns for x; 0 without UseMean.
        held: the sizes of FLOAT16 stores of the mean and of the differences from it, or of x.
        exact: which means `exact_mean` marks; None without UseMean.
        mean: the means; None without UseMean.
    """

    values: Array
    terms: Array
    size: Array
    added: Array
    partial: Array
    held: Array
    exact: Array | None
    mean: Array | None


def _centred(desc: MeanVarianceNormalization2Desc, over: tuple[int, ...]) -> _Centred:
    values = desc.InputTensor.astype(np.float64)
    size = np.abs(values)
    added = size.sum(over, keepdims=True, where=np.isfinite(size))
    if not desc.UseMean:
        held = store_sizes(values, np.ones(1, bool))
        return _Centred(values, size, size, added, np.zeros(1), held, None, None)
    partial = partial_mean(values, over)
    mean = values.mean(over, keepdims=True)
    values -= mean
    exact = exact_mean(desc.InputTensor, mean, added)
    held = store_sizes(mean, exact)
    held = held + store_sizes(values, exact & (held == 0))
    terms = size + size.mean(over, keepdims=True)
    return _Centred(values, terms, size, added, partial, held, exact, mean)


@dataclass(frozen=True, slots=True)
class _Normalized:
    """The quotients before they are scaled, or `x - mean` without UseVariance.

    Attributes:
        growth: by how much the quotient multiplies the errors of `x - mean`.
        largest: the largest intermediates of each result, to see which overflow.
        undefined: the quotients for which any value is right.
        others: quotients that are right as well.
        of_single_elements: if each element is its own mean and Epsilon is 0, the quotients with x
            as its own variance; else None.
    """

    values: Array
    error_scale: ErrorScale
    growth: Array
    largest: Array
    undefined: Array
    others: Sequence[Array] = ()
    of_single_elements: Array | None = None


def _undivided(
    desc: MeanVarianceNormalization2Desc, over: tuple[int, ...], centred: _Centred
) -> _Normalized:
    values, steps = centred.values, _steps(desc)
    error_scale = ErrorScale(centred.terms + steps * np.abs(values), centred.held)
    return _Normalized(values, error_scale, np.ones(1), _largest(desc, centred), np.zeros(1, bool))


def _divided(
    desc: MeanVarianceNormalization2Desc, over: tuple[int, ...], centred: _Centred
) -> _Normalized:
    dtype, epsilon = desc.OutputTensor.DataType.dtype, single(desc.Epsilon)
    squares = np.square(centred.values)
    sums = squares.sum(over, keepdims=True)
    variance = squares.mean(over, keepdims=True)
    divisor = np.sqrt(variance + epsilon)
    values = centred.values / divisor
    largest = greatest_product(np.fmax(_largest(desc, centred), sums), 1 / divisor)
    # FLOAT16 may hold the variance (the root halves its relative error), the root, and the
    # quotient before it is scaled.
    root = store_sizes(divisor) + 0.5 * store_sizes(variance) / divisor
    held = centred.held / divisor + np.abs(values) * root / divisor
    if desc.ScaleTensor is not None or desc.BiasTensor is not None:
        held = held + store_sizes(values)
    # The root halves the relative error of the sum with a negative Epsilon.
    steps = _steps(desc) + (cancellation_of(variance, desc.Epsilon) - 1) / 2
    error_scale = ErrorScale(centred.terms / divisor + steps * np.abs(values), held)
    count = elements_over(desc.InputTensor, over)
    undefined = of_rounding_alone(centred.partial, divisor, count)
    if desc.Epsilon < 0 and dtype == np.float16:
        tensor, use_mean = desc.InputTensor, desc.UseMean
        either = root_of_either_sign(tensor, over, variance, desc.Epsilon, use_mean=use_mean)
        undefined = undefined | either
    sizes = centred.size, centred.partial, centred.values, variance, divisor
    factors = alike(desc.InputTensor, over), alike(squares, over)
    error_scale = error_scale.at_most(quotient_scale(*sizes, count, factors))
    error_scale = error_scale + variance_loss(np.abs(values), variance, desc.Epsilon, dtype)
    # A variance that is stored as 0 makes quotients infinite or NaN, also with a scale of 0.
    undefined = undefined | (error_scale.sums >= ANY_RESULT)
    others = saturated(centred.values, variance, sums, desc.Epsilon, dtype)
    of_single_elements = None
    if desc.UseMean and count == 1 and epsilon == 0:
        # Measured: instead of 0 / 0, DirectML takes the element itself for its variance.
        of_single_elements = centred.values / np.sqrt(desc.InputTensor.astype(np.float64))
        others = [of_single_elements, *others]
    return _Normalized(
        values, error_scale, 1 / divisor, largest, undefined, others, of_single_elements
    )


def _steps(desc: MeanVarianceNormalization2Desc) -> int:
    """Return how often a result is rounded at most: root, quotient and product with the scale."""
    return 2 if desc.ScaleTensor is None else 3


def _largest(desc: MeanVarianceNormalization2Desc, centred: _Centred) -> Array:
    scale = np.ones(1) if desc.ScaleTensor is None else np.abs(desc.ScaleTensor)
    return greatest_product(centred.terms, scale.astype(np.float64))


def _activated(
    desc: MeanVarianceNormalization2Desc,
    over: tuple[int, ...],
    centred: _Centred,
    normalized: _Normalized,
    error_scale: ErrorScale,
) -> ErrorScale:
    """Return the error scale after FusedActivation, with all other results that are right."""
    dtype, activation = desc.OutputTensor.DataType.dtype, desc.FusedActivation
    scale, bias = desc.ScaleTensor, desc.BiasTensor
    values = _scaled(normalized.values, scale, bias)
    fused_scale = fused_error_scale(values, error_scale, activation, dtype)
    if activation is None:
        steps = Normalization(
            values=wide(desc.InputTensor),
            mean=centred.mean,
            over=over,
            scale=np.ones(1) if scale is None else wide(scale),
            deviation=1 / normalized.growth if desc.UseVariance else None,
            added=() if bias is None else (wide(bias),),
            dtype=dtype,
        )
        fused_scale = steps.limited(fused_scale, values)
    others = list(normalized.others)
    if dtype == np.float16:
        others += _averaged_in_passes(desc, over)
        epsilon = desc.Epsilon if desc.UseVariance else None
        spans = _normalized_spans(desc.InputTensor, scale, bias, over, centred.exact, epsilon)
        fused_scale = fused_scale.spanned(*(fused_span(each, activation) for each in spans))
    if normalized.of_single_elements is not None and activation is not None:
        # The error scale above is that of the activation of NaN.
        sums = _scaled(normalized.of_single_elements, scale, bias)
        fused_scale = fused_scale.spanned(activated_span(sums, activation))
    results = (fused(_scaled(other, scale, bias), activation) for other in others)
    fused_scale = fused_scale.open_where(normalized.undefined).with_others(results, dtype)
    return replace(fused_scale, sums_shared=True)


def root_of_either_sign(
    tensor: Array, over: tuple[int, ...], variance: Array, epsilon: float, *, use_mean: bool = True
) -> Array:
    """Return where FLOAT16 stores decide the sign of variance plus epsilon, or make it 0.

    Of 2047 and 2048 the variance is 0.25. With the mean 2047.5 stored as 2048 it is 0.5, and with
    an epsilon of -0.5 the root is 0, not NaN.

    Args:
        over: the dimensions in which elements share a mean and a variance.
        variance: the variance of these elements without epsilon, size 1 in these dimensions.
        use_mean: whether the mean is subtracted.
    """
    values, added = wide(tensor), single(epsilon)
    mean = values.mean(over, keepdims=True) if use_mean else np.zeros(1)
    differs = np.zeros(variance.shape, bool)
    for held in (stored(mean) for stored in STORES):
        other = np.square(values - held).mean(over, keepdims=True)
        for stored in (other, toward_zero(other), toward_zero(variance)):
            differs |= (stored + added < 0) != (variance + added < 0)
            differs |= stored + added == 0
    return differs


def _averaged_in_passes(desc: MeanVarianceNormalization2Desc, over: tuple[int, ...]) -> list[Array]:
    """Return the quotients of FLOAT16 kernels whose averages are those of `in_passes`, if any.

    Without UseVariance, they are `x - mean`. Measured: DirectML 1.8.0 may also truncate the inverse
    of the root.
    """
    quotients = []
    for averaged in in_passes(over, lambda values, axes: values.mean(axes, keepdims=True)):
        values = wide(desc.InputTensor)
        if desc.UseMean:
            values = toward_zero(values - averaged(values))
        if desc.UseVariance:
            root = np.sqrt(averaged(np.square(values)) + single(desc.Epsilon))
            quotients.append(values * toward_zero(1 / root))
            values = values / root
        quotients.append(values)
    return quotients


def _normalized_spans(
    tensor: Array,
    scale: Array | None,
    bias: Array | None,
    over: tuple[int, ...],
    exact: Array | None,
    epsilon: float | None,
) -> Iterator[Span]:
    """Yield a span of the output before FusedActivation for each way to store mean and variance.

    A kernel may also store in FLOAT16 `(x - mean) / deviation`, `scale / deviation`, and the
    product with the scale before it adds the bias.

    Args:
        exact: which means are the same in every order of adding; None without UseMean.
        epsilon: the operator's epsilon; None without UseVariance.
    """
    statistics = Statistics.of(wide(tensor), over, exact)
    one = [Span.of(np.ones(1))]
    inverses = one if epsilon is None else list(statistics.inverse_roots(epsilon))
    for centred, inverse in product(statistics.differences, inverses):
        values = centred if epsilon is None else (centred * inverse).rounded()
        if scale is not None:
            factor = (inverse * wide(scale)).rounded()
            held = factor if epsilon is None else factor.held()
            scaled = (centred * factor.or_any([held])).rounded()
            values = scaled.or_any([(values.held() * wide(scale)).rounded()])
        yield values if bias is None else values.held() + wide(bias)


def lp_normalization_error_scale(
    InputTensor: Array, OutputTensor: TensorDesc, Axis: int, Epsilon: float, P: int
) -> ErrorScale:
    """Return the error scale of `x / sqrt(norm ** 2 + Epsilon)`.

    FLOAT16 kernels may store the norm, its square and the root.

    Derived in docs/bounds.md, Lp normalisation.
    """
    dtype = OutputTensor.DataType.dtype
    with np.errstate(all="ignore"):
        values = InputTensor.astype(np.float64)
        square = squared_norm(values, Axis, P)
        size = np.abs(values) / np.sqrt(square + single(Epsilon))
        root = np.sqrt(square + single(Epsilon))
        of_square = store_sizes(square) / np.square(root) / 2
        share = of_square + store_sizes(root) / root
        if P == 1:
            norm = np.sqrt(square)
            share = share + store_sizes(norm) * norm / np.square(root)
        cancelled = cancellation_of(square, Epsilon)
        # The root halves a relative error. For P of 1, squaring the sum has doubled it before.
        sums = size * (cancelled if P == 1 else (1 + cancelled) / 2)
        error_scale = ErrorScale(sums, size * share * cancelled)
        # If the norm overflows, the quotients are those of `saturated`, never infinite or NaN.
        error_scale += replace(variance_loss(size, square, Epsilon, dtype), overflows=None)
        if dtype == np.float16:
            error_scale = error_scale.spanned(*_lp_spans(values, Axis, Epsilon, P))
            if Epsilon < 0:
                error_scale = error_scale.open_where(_root_may_vanish(square, Epsilon, P))
        others = saturated(values, square, square, Epsilon, dtype)
        if P == 1:
            norm = np.minimum(np.sqrt(square), float(np.finfo(dtype).max))
            others += saturated(values, np.square(norm), square, Epsilon, dtype)
        return error_scale.with_others(others, dtype)


def _root_may_vanish(square: Array, epsilon: float, order: int) -> Array:
    """Return where FLOAT16 stores decide whether `square + epsilon` is 0 or negative.

    Measured on DirectML 1.8.2: 0.50034 is truncated to 0.5 in FLOAT16, and an Epsilon of -0.5
    makes quotients infinite.
    """
    right = square + single(epsilon)
    differs = np.zeros(square.shape, bool)
    norm = np.sqrt(square)
    for stored in STORES:
        squares = stored(square) if order == 2 else stored(np.square(stored(norm)))
        differs |= (squares + single(epsilon) <= 0) != (right <= 0)
    return differs


def _lp_spans(values: Array, axis: int, epsilon: float, order: int) -> Iterator[Span]:
    terms = np.abs(values) if order == 1 else np.square(values)
    sums = terms.sum(axis, keepdims=True)
    exact = sums <= quantum_of(terms) * 2.0**24
    for norm in Span.sums(sums, sums, values.shape[axis], exact).stores():
        squares = [norm] if order == 2 else norm.square().rounded(exact).stores()
        for square in squares:
            added = (square + single(epsilon)).rounded(exact & (epsilon == 0))
            for root in added.map(np.sqrt).rounded().stores():
                yield Span.of(values) / root


def saturated(
    centred: Array, variance: Array, squares: Array, epsilon: float, dtype: np.dtype[Any]
) -> list[Array]:
    """Return two arrays of quotients, FLOAT64, that are right if the variance overflows `dtype`.

    A kernel that truncates stores the largest number instead, and divides by its root. A kernel
    that rounds to nearest stores infinity, which makes the quotient 0, and so does a sum of squares
    that overflows FLOAT32. Where nothing overflows, both arrays have the right quotients.

    Args:
        centred: the dividends: `x - mean`, or x.
        variance: the variance, or the square of the norm, without epsilon.
        squares: the sums of squares, which a kernel computes in FLOAT32.
    """
    right = np.sqrt(variance + single(epsilon))
    largest = np.sqrt(np.minimum(variance, float(np.finfo(dtype).max)) + single(epsilon))
    overflowed = overflows(squares) | overflows(variance, dtype)
    overflowed |= overflows(variance + single(epsilon))
    return [centred / largest, np.where(overflowed, 0.0, centred / right)]


def exact_mean(tensor: Array, mean: Array, added: Array) -> Array:
    """Return which means are the same in every order of adding.

    The sum must be exact, and so must the division: the count is a power of two, or the sum is 0.

    Args:
        added: the sums of the absolute values of the elements.
    """
    count = tensor.size // mean.size
    exact: Array = added <= quantum_of(tensor) * 2.0**24
    exact &= (mean == 0) | (count & (count - 1) == 0)
    return exact


def variance_loss(size: Array, variance: Array, epsilon: float, dtype: np.dtype[Any]) -> ErrorScale:
    """Return the error scale that comes from storing the variance in the output's data type.

    Measured: FLOAT16 kernels store the variance in FLOAT16, where it may overflow, become
    subnormal, or become 0.

    Args:
        size: the absolute value of each normalized element.
        variance: the variance without epsilon.
    """
    info = np.finfo(dtype)
    step = info.smallest_subnormal if dtype == np.float16 else info.tiny
    share = np.where(variance > 0, float(step), 0.0)
    share = share / (variance + single(epsilon))
    loss: Array = np.where(share > 0, size * share / float(info.eps), 0.0)
    error_scale = ErrorScale(loss)
    if dtype == np.float16:
        error_scale = ErrorScale(np.zeros_like(loss), loss)
    # Where a store may take more than half of variance plus epsilon away, any quotient is right.
    return error_scale.overflowing_where(variance > float(info.max)).open_where(share > 0.5)


def _scaled(values: Array, scale: Array | None, bias: Array | None) -> Array:
    if scale is not None:
        values = values * scale.astype(np.float64)
    return values if bias is None else values + bias.astype(np.float64)
