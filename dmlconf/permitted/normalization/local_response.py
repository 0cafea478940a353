"""Permitted errors of LOCAL_RESPONSE_NORMALIZATION and its gradient: those of sums and of powers.

The base is `Bias + Alpha / LocalSize * sum(x ** 2)`, which is raised to a power.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.half import STORES, overflow_results
from dmlconf.permitted.numbers.rounding import (
    ANY_RESULT,
    HALF_STEP,
    STEP,
    greatest_product,
)
from dmlconf.permitted.numbers.span import Span
from dmlconf.precision.accumulation import float16_ulps, roundings
from dmlconf.reference.fields import of_fields
from dmlconf.reference.normalization.local_response import (
    AnyLocalResponseDesc,
    LocalResponseDesc,
    LocalResponseGradDesc,
    local_response_gradients,
    power_base,
    window_sums,
)
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import (
    FLOAT16_EPSILON,
    LARGEST_FLOAT32,
    LEAST_NORMAL_FLOAT32,
    LEAST_SUBNORMAL_FLOAT32,
)

__all__ = [
    "local_response_normalization_error_scale",
    "local_response_normalization_grad_error_scale",
]

_POWER: Final = 2.0**-19
"""The relative error of x^2, by exp2 and log2 with errors of 2^-21, for |x| from 1/4 to 4."""

_STEEP: Final = 0.125
"""From this relative error of a power on, its least and its greatest value count."""

_OPERATIONS: Final = 4
"""How many operations the operator's rule counts besides the terms of the sum."""


@of_fields(LocalResponseDesc)
def local_response_normalization_error_scale(desc: LocalResponseDesc) -> ErrorScale:
    """Return the error scale: each result's size, times the relative errors of sum and power.

    A result that overflows has the sign of its input.

    Derived in docs/bounds.md, Local response normalisation.
    """
    with np.errstate(all="ignore"):
        values = np.abs(desc.InputTensor, dtype=np.float64)
        base = power_base(desc, values)
        terms = _terms(desc, values)
        exponent = single(desc.Beta)
        power = np.power(base, exponent)
        condition = _condition(base, terms, abs(exponent))
        beyond = _squares_in_doubt(desc, base) | _one_in_doubt(desc, base)
        count = window_sums(desc, np.ones(base.shape)) + _OPERATIONS
        likely = condition * ((roundings(count) + count) * HALF_STEP)
        spans = [_span_of_steep_powers(desc, base, values, likely)]
        near_zero = np.abs(base) < _reach_of_base(terms)
        spans += _spans_near_zero(desc, values, np.where(near_zero, _reach_of_base(terms), np.nan))
        values /= np.abs(power)
        error_scale: Array = values * condition
        overflows = np.isfinite(base) & (np.power(base, abs(exponent)) > LARGEST_FLOAT32)
        zero = np.zeros((), bool)
        if desc.Beta >= 0:
            # Measured: a result over a power that overflows is 0. The reciprocal of a power that
            # underflows is infinite, and 0 times the reciprocal is NaN.
            zero = overflows & np.isfinite(values)
            underflows = power < LEAST_NORMAL_FLOAT32
            infinite = (values != 0) & (power > 0) & underflows
            overflows = ((values == 0) & underflows) | infinite
            spans.append(_span_of_subnormal_power(values, power, infinite, likely))
        known = np.logical_or.reduce([span.finite for span in spans])
        error_scale[known] = LEAST_NORMAL_FLOAT32
        sizes = np.where(beyond, ANY_RESULT, error_scale)
        # Measured on DirectML 1.8.0 to 1.15.4: over a base of 0 the result is infinite, with a Beta
        # of 0 and a negative one as well.
        overflows |= near_zero
        scale = ErrorScale(sizes).overflowing_where(overflows)
        growth = np.where(known, 1.0, condition)
        scale = scale.growing(growth, values)
        for span in spans:
            ends = (np.copysign(end, desc.InputTensor) for end in span.ends)
            scale = scale.spanned(Span.around(*ends))
        dtype = desc.OutputTensor.DataType.dtype
        right = np.asarray(desc.InputTensor / power)
        others = list(_results_without_base(desc, base, near_zero, right))
        if zero.any():
            others.append(np.where(zero, 0.0, right))
        scale = scale.with_others(others, dtype)
        either = near_zero & (exponent % 2 == 1)
    sides = (
        np.where((desc.InputTensor > 0) & ~either, 0, -np.inf),
        np.where((desc.InputTensor < 0) & ~either, 0, np.inf),
    )
    return replace(scale, by_sign=sides)


def _results_without_base(
    desc: LocalResponseDesc, base: Array, near_zero: Array, right: Array
) -> Iterator[Array]:
    """Yield further results where the power is not that of the base, FLOAT64.

    - A negative base: NaN, or the power of a whole Beta. Measured on DirectML 1.8.0 to 1.15.4: NaN
      here, and powers in the gradient.
    - A base next to 0: NaN.
    - A base of 0, infinity or NaN, and a Beta that is 0, negative or subnormal: NaN. A subnormal
      Beta also counts as 0. With a Beta of 0, a base that overflows is infinite.
    - A sum of squares that overflows: a base that is infinite, or NaN if Alpha is 0.

    Args:
        right: the results by the power of any whole Beta.
    """
    exponent = single(desc.Beta)
    nan = near_zero | ((base < 0) & (exponent % 1 == 0))
    flushed = abs(exponent) < LEAST_NORMAL_FLOAT32
    special = (base == 0) | ~np.isfinite(base)
    beyond = _base_overflows(desc, base)
    if flushed:
        special |= beyond
    if exponent < LEAST_NORMAL_FLOAT32:
        nan |= special
        if flushed and special.any():
            yield np.where(special, desc.InputTensor, right)
    if nan.any():
        yield right
        yield np.where(nan, np.nan, right)
    if beyond.any():
        infinite = np.inf * single(desc.Alpha)
        yield np.where(beyond, desc.InputTensor / np.power(infinite, exponent), right)
        if not single(desc.Alpha) > 0:
            yield np.where(beyond, np.nan, right)


def _spans_near_zero(desc: LocalResponseDesc, values: Array, reach: Array) -> list[Span]:
    """Return the spans of the sizes of results whose base may be any number up to `reach`.

    The power of an odd whole Beta may be negative: the second span, if there is one, is that of
    such results.

    Args:
        values: the absolute values of the input.
        reach: twice how large the base may be, NaN for other results.
    """
    exponent = single(desc.Beta)
    end = values / np.power(2 * reach, exponent)
    if exponent == 0:
        sizes = np.where(np.isnan(reach), np.nan, values)
        return [Span(sizes, sizes)]
    least, greatest = (0.0, end) if exponent < 0 else (end, LARGEST_FLOAT32)
    known = np.isfinite(reach) & np.isfinite(values)
    ends = (
        np.where(known, np.minimum(size, LARGEST_FLOAT32), np.nan) for size in (least, greatest)
    )
    span = Span(*ends)
    return [span, Span(-span.greatest, -span.least)] if exponent % 2 == 1 else [span]


@of_fields(LocalResponseGradDesc)
def local_response_normalization_grad_error_scale(desc: LocalResponseGradDesc) -> ErrorScale:
    """Return the error scale: the terms' sizes, each times the errors of its inner sum and power.

    Measured for FLOAT16: kernels store squares, their sums and the base in FLOAT16, truncated.
    Results of such kernels are right too, truncated or rounded to nearest, and so are numbers half
    way between these and the results without stores.

    Any result is right for an element if an intermediate in its window may overflow, be lost or be
    NaN.

    Derived in docs/bounds.md, Local response normalisation.
    """
    dtype = desc.OutputGradientTensor.DataType.dtype
    info = np.finfo(dtype)
    is_half = dtype == np.float16
    smallest = info.smallest_subnormal if is_half else info.tiny
    underflow = float(smallest) / float(info.eps)
    exponent = abs(single(desc.Beta))
    with np.errstate(all="ignore"):
        values = np.abs(desc.InputTensor, dtype=np.float64)
        gradient = np.abs(desc.InputGradientTensor, dtype=np.float64)
        base = power_base(desc, values)
        terms = _terms(desc, values) + abs(desc.Alpha) * underflow
        nan_in_doubt = np.abs(base) < _reach_of_base(terms)
        errors = [_store_error(desc, store) for store in STORES] if is_half else []
        if is_half:
            nan_in_doubt |= _stored_sign_in_doubt(desc, base, values, errors)
        negative = (base < 0) & ~nan_in_doubt & (single(desc.Beta) % 1 == 0)
        base = np.abs(base)
        power = np.power(base, -single(desc.Beta) - 1)

        def sizes(condition: Array, least: float) -> tuple[Array, Array]:
            """Return the error scale of all terms together, and the sums of products in them."""
            factor = power * condition + least
            sums = window_sums(desc, gradient * values * factor) + least
            second = (
                2 * abs(single(desc.Alpha) * single(desc.Beta)) / desc.LocalSize * values * sums
            )
            return second + gradient * base * factor, sums

        condition = _condition(base, terms, exponent + 1)
        error_scale, sums = sizes(condition, 0.0 if is_half else underflow)
        growth = window_sums(desc, np.fmax(condition, 0.0))
        stored, others = None, list[Array]()
        if is_half:
            _, sums = sizes(2 + (exponent + 1) * terms / base, underflow)
            stored, _ = sizes((exponent + 1) * np.maximum(*errors) / base, 0.0)
            double = np.dtype(np.float64)
            right = local_response_gradients(desc, double)
            held = [local_response_gradients(desc, double, store) for store in STORES]
            others = [*held, *((values + right) / 2 for values in held)]
            for store in (None, *STORES):
                others += _gradients_of_limited_sums(desc, store)
        if negative.any():
            others += _gradients_of_negative_bases(desc, negative)
        constants = np.asarray(2 * single(desc.Alpha)), np.asarray(single(desc.Beta))
        # Kernels multiply by the gradient at the end, or at the beginning.
        largest = greatest_product(power, *constants, values, gradient)
        largest = np.fmax(largest, base * power)
        beyond = (np.fmax(largest, sums) > LARGEST_FLOAT32) | (base > info.max)
        beyond |= window_sums(desc, np.square(values)) > info.max
        beyond |= _beyond(desc, base)
        beyond |= nan_in_doubt
        beyond = window_sums(desc, beyond.astype(np.float64)) > 0
        beyond |= greatest_product(*constants, values, sums) > LARGEST_FLOAT32
        slope = greatest_product(values, *constants, window_sums(desc, power))
        overflow = np.isfinite(values) & (slope > LARGEST_FLOAT32)
        if (overflow & ~beyond).any():
            # Kernels multiply an element by the powers in its window before a gradient of 0.
            right = local_response_gradients(desc, np.dtype(np.float64))
            others += (np.where(overflow, end, right) for end in (np.nan, np.inf, -np.inf))
        candidates = tuple(values.astype(dtype) for values in others)
    scale = ErrorScale(error_scale, stored, others=candidates, growth=growth)
    return scale.open_where(beyond)


def _gradients_of_negative_bases(desc: LocalResponseGradDesc, negative: Array) -> Iterator[Array]:
    """Yield the gradients by whole powers of negative numbers, and with NaN in their place.

    Measured on DirectML 1.8.0 to 1.15.4: (-2)^-1 is -0.5 in the gradient, and NaN in
    LOCAL_RESPONSE_NORMALIZATION.
    """
    dtype = desc.OutputGradientTensor.DataType.dtype
    double = np.dtype(np.float64)
    right = local_response_gradients(desc, double, whole_powers=True)
    yield right
    if dtype == np.float16:
        for store in STORES:
            held = local_response_gradients(desc, double, store, whole_powers=True)
            yield held
            yield (held + right) / 2
    yield np.where(window_sums(desc, negative.astype(np.float64)) > 0, np.nan, right)


def _gradients_of_limited_sums(desc: LocalResponseGradDesc, store: Store | None) -> Iterator[Array]:
    """Yield the gradients if FLOAT16 limits the sums of gradients that meet the squares' slopes.

    Nothing is yielded if no sum exceeds 65504 in size.

    Args:
        store: see `local_response_gradients`.
    """
    values, gradient = wide(desc.InputTensor), wide(desc.InputGradientTensor)
    base = power_base(desc, values, store)
    power = np.power(base, single(desc.Beta))
    factor = 2 * single(desc.Alpha) * single(desc.Beta) / desc.LocalSize
    for sums in overflow_results(window_sums(desc, gradient * values / (base * power))):
        yield gradient / power - factor * values * sums


def _store_error(desc: AnyLocalResponseDesc, store: Store) -> Array:
    """Return the error of a base that is stored in FLOAT16, in units of 2^-10, the ULP of 1.

    It is 0 where rounding errors of FLOAT32 do not change what is stored.
    """
    squares = np.square(desc.InputTensor, dtype=np.float64)
    # Measured: a square that is a FLOAT16 number may come out smaller.
    off = _off(squares, _POWER * squares, store)
    held = store(squares)
    sums = window_sums(desc, held)
    terms = window_sums(desc, np.ones_like(squares))
    off = window_sums(desc, off)
    off += _off(sums, off + HALF_STEP * (terms + 4) * sums, store)
    scale = abs(single(desc.Alpha)) / desc.LocalSize
    before = single(desc.Alpha) / desc.LocalSize * store(sums) + single(desc.Bias)
    reach = off * scale + STEP * (3 * scale * sums + np.abs(before))
    error: Array = (off * scale + _off(before, reach, store)) / FLOAT16_EPSILON
    return error


def _off(values: Array, reach: Array, store: Store) -> Array:
    """Return the FLOAT16 ULP of each value whose error may change its store; 0 for others."""
    return np.where(store(values - reach) == store(values + reach), 0.0, float16_ulps(values))


def _stored_sign_in_doubt(
    desc: AnyLocalResponseDesc, base: Array, values: Array, errors: Sequence[Array]
) -> Array:
    """Return where FLOAT16 stores decide the sign of the base, or whether it is 0.

    Measured on DirectML 1.12.1 with a Beta of -1.
    """
    ends = [base]
    for store, error in zip(STORES, errors, strict=True):
        held = power_base(desc, values, store)
        ends += [held - FLOAT16_EPSILON * error, held + FLOAT16_EPSILON * error]
    lowest, highest = np.minimum.reduce(ends), np.maximum.reduce(ends)
    whole = single(desc.Beta) % 1 == 0
    in_doubt: Array = (lowest <= 0) & ((highest >= 0) if whole else (highest > 0))
    return in_doubt


def _beyond(desc: AnyLocalResponseDesc, base: Array) -> Array:
    """Return where any gradient is right, since an intermediate may overflow, be lost or be NaN.

    That is where

    - the sum of squares, its product with Alpha, or the base overflows;
    - squares may be lost (`_squares_in_doubt`);
    - Beta is 0, negative or subnormal, and the base is 0, infinite or NaN;
    - Beta is infinite and the base near 1 (`_one_in_doubt`).
    """
    beyond = _base_overflows(desc, base) | _squares_in_doubt(desc, base)
    if single(desc.Beta) < LEAST_NORMAL_FLOAT32:
        beyond |= (base == 0) | ~np.isfinite(base)
    return beyond | _one_in_doubt(desc, base)


def _base_overflows(desc: AnyLocalResponseDesc, base: Array) -> Array:
    """Return where the sum of squares, its product with Alpha, or the base overflows."""
    sums = window_sums(desc, np.square(desc.InputTensor, dtype=np.float64))
    greatest = np.maximum(max(1.0, abs(single(desc.Alpha))) * sums, np.abs(base))
    beyond: Array = np.isfinite(sums) & (greatest > LARGEST_FLOAT32)
    return beyond


def _squares_in_doubt(desc: AnyLocalResponseDesc, base: Array) -> Array:
    """Return where losing squares, or their products with Alpha, changes the base visibly.

    They are lost if they are subnormal, or if Alpha is.
    """
    info = np.finfo(np.float32)
    squares = np.square(desc.InputTensor, dtype=np.float64)
    underflow = (
        desc.LocalSize * desc.LocalSize * float(info.tiny) * max(abs(single(desc.Alpha)), 1.0)
    )
    least = squares * min(1.0, abs(single(desc.Alpha)) / desc.LocalSize)
    lost = (squares > 0) & (least < LEAST_NORMAL_FLOAT32)
    subnormal = window_sums(desc, lost.astype(np.float64)) > 0
    in_doubt: Array = subnormal & (underflow > np.abs(base) * float(info.eps))
    if 0 < abs(single(desc.Alpha)) / desc.LocalSize < LEAST_NORMAL_FLOAT32:
        # A factor that may be 0 loses any square.
        in_doubt |= window_sums(desc, (squares > 0).astype(np.float64)) > 0
    return in_doubt


def _one_in_doubt(desc: AnyLocalResponseDesc, base: Array) -> Array:
    """Return where Beta is infinite and the base near 1.

    There log(1) times infinity is NaN on DirectML 1.8.0.
    """
    if not np.isinf(desc.Beta):
        return np.zeros(base.shape, bool)
    terms = _terms(desc, np.abs(desc.InputTensor, dtype=np.float64))
    in_doubt: Array = np.abs(base - 1) <= _reach_of_base(terms)
    return in_doubt


def _reach_of_base(terms: Array) -> Array:
    """Return how far the base may be off."""
    return 8 * float(np.finfo(np.float32).eps) * terms


def _span_of_steep_powers(
    desc: LocalResponseDesc, base: Array, values: Array, likely: Array
) -> Span:
    """Return the span of the size of each result that rounding errors may change much.

    NaN for other results. Those are results

    - with a relative error of more than `_STEEP`: a power that is e times as large has e times the
      result, and never another sign;
    - above 2^127 that rounding errors may bring below 2^128. Measured on DirectML 1.8.0: a base of
      1 + 1e-15 is rounded to 1, whose power is 1 even if Beta is -1e38.

    Args:
        values: the absolute values of the input.
        likely: the relative error of each result that the operator's rule permits.
    """
    binary_logarithm = np.log2(values) - single(desc.Beta) * np.log2(np.abs(base))
    certain = np.isfinite(values) & np.isfinite(base) & (base > 0) & (values > 0)
    steep = certain & (likely > _STEEP) & np.isfinite(likely)
    reach = likely / math.log(2)
    overflow = certain & (binary_logarithm > 127) & (binary_logarithm - reach < 128)
    return Span(
        *(
            np.where(steep | overflow, np.minimum(np.exp2(end), LARGEST_FLOAT32), np.nan)
            for end in (binary_logarithm - reach, binary_logarithm + reach)
        )
    )


def _span_of_subnormal_power(values: Array, power: Array, subnormal: Array, likely: Array) -> Span:
    """Return the span of the size of each result over a `subnormal` power; NaN for others.

    A subnormal FLOAT32 number is off by up to 2^-149.

    Args:
        values: the results' sizes.
        likely: the relative error of each result that the operator's rule permits.
    """
    held = subnormal & (power >= LEAST_SUBNORMAL_FLOAT32)
    least, greatest = (
        np.where(held, values * (power / (power + side * LEAST_SUBNORMAL_FLOAT32)), values)
        * np.exp(-side * likely)
        for side in (1, -1)
    )
    known = subnormal & (least <= LARGEST_FLOAT32)
    greatest = np.minimum(greatest, LARGEST_FLOAT32)
    return Span(*(np.where(known, end, np.nan) for end in (least, greatest)))


def _terms(desc: AnyLocalResponseDesc, values: Array) -> Array:
    """Return the error scale of the base: the base of absolute values."""
    return power_base(replace(desc, Alpha=abs(desc.Alpha), Bias=abs(desc.Bias)), values)


def _condition(base: Array, terms: Array, exponent: float) -> Array:
    """Return the relative error of the power in units of the rounding error of one operation."""
    condition: Array = 1 + exponent * (terms / np.abs(base) + np.abs(np.log2(np.abs(base))))
    return condition
