"""Permitted results of an activation that an operator applies to its own sums, with their errors.

Derived in docs/bounds.md, Fused activations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dmlconf.permitted.activation.errors import ERRORS, infinite_by_factor
from dmlconf.permitted.activation.slopes import local_slope, slope
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.numbers.half import overflow_results
from dmlconf.permitted.numbers.rounding import ANY_RESULT, MOST_ROUNDINGS, STEP
from dmlconf.permitted.numbers.span import Span
from dmlconf.reference.activation.formulas import attributes_of
from dmlconf.reference.activation.fused import fused
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import FLOAT16_EPSILON, LARGEST_FLOAT16, LARGEST_FLOAT32

__all__ = [
    "activated_error_scale",
    "activated_span",
    "fused_error_scale",
    "fused_span",
    "limiting_products",
]

_JUMPS: Final[Mapping[str, Callable[..., tuple[float, float]]]] = {
    "ACTIVATION_SHRINK": lambda Bias, Threshold: (-Threshold, Threshold),
    "ACTIVATION_THRESHOLDED_RELU": lambda Alpha: (Alpha or np.nan,) * 2,
}
"""The two arguments at which an activation may jump; twice the same for one jump, NaN for none."""


@np.errstate(all="ignore")
def fused_span(span: Span, activation: Mapping[str, Any] | None) -> Span:
    """Return the span of an activation's results for sums, which may be stored in FLOAT16 first.

    The activation's own error is not included. Without an activation, the span stays as it is.
    """
    if activation is None:
        return span
    held = span.held()
    width = held.greatest - held.least
    kink = np.minimum(np.maximum(held.least, 0.0), held.greatest)
    # Arguments between the ends count too: GELU has a minimum, and ELU a kink at 0.
    return Span.around(
        *(fused(each, activation) for each in (held.least, kink, held.greatest)),
        *(fused(held.least + share * width, activation) for share in (0.25, 0.5, 0.75)),
    )


def activated_span(sums: Array, activation: Mapping[str, Any]) -> Span:
    """Return the span of an activation's results for exact sums, with its own error."""
    with np.errstate(all="ignore"):
        error = ERRORS[activation["operator"]](sums, **attributes_of(activation))
        result = fused(sums, activation)
    return Span(result - error, result + error)


def fused_error_scale(
    values: Array,
    error_scale: ErrorScale,
    activation: Mapping[str, Any] | None,
    dtype: np.dtype[Any],
    *,
    only_sums: bool = False,
) -> ErrorScale:
    """Return the error scale of a sum after a fused activation, for the rule `accumulate`.

    It includes the activation's own error and its last rounding, and a store of the sum in FLOAT16
    before the activation. Without an activation, the error scale stays as it is.

    Derived in docs/bounds.md, Fused activations.

    Args:
        values: the sums, FLOAT64.
        dtype: the output's type.
        only_sums: whether nothing but the sum may overflow or be limited, so that this leaves the
            activation of an infinity, of NaN or of FLOAT16's largest number.
    """
    if activation is None:
        return error_scale
    with np.errstate(all="ignore"):
        error = ERRORS[activation["operator"]](values, **attributes_of(activation))
        result = fused(values, activation)
        scaled, reach = activated_error_scale(
            values, error_scale, activation, dtype, error, result, only_sums=only_sums
        )
        return _spanned_where_steep(scaled, values, reach, activation)


def limiting_products(
    error_scale: ErrorScale,
    products: Array,
    added: Array,
    activation: Mapping[str, Any] | None,
    dtype: np.dtype[Any],
) -> ErrorScale:
    """Return the error scale of results before which FLOAT16 may limit the products.

    The product 90000 is stored as 65504 or as infinity, so its sum with -40000 may be 25504 instead
    of 50000. Before an activation, the sum may be limited too. Nothing changes if no finite product
    exceeds 65504 in size.

    Args:
        error_scale: the error scale of the results, that is of the sums without an activation.
        products: sums of products, FLOAT64.
        added: what the kernel adds to the products, such as a bias.
        dtype: the output's type.
    """
    limited = np.isfinite(products) & (np.abs(products) > LARGEST_FLOAT16)
    results, scale = [], error_scale.sums
    for held in overflow_results(products):
        sums = held + added
        for each in (sums,) if activation is None else (sums, *overflow_results(sums)):
            results.append(fused(each, activation))
            if activation is not None:
                # The activation of the sum may be exact, and that of the limited one not.
                own = ERRORS[activation["operator"]](each, **attributes_of(activation))
                size = own / STEP + np.abs(results[-1])
                scale = np.where(limited & np.isfinite(size), np.fmax(scale, size), scale)
    return replace(error_scale, sums=scale).with_others(results, dtype)


def activated_error_scale(
    values: Array,
    error_scale: ErrorScale,
    activation: Mapping[str, Any],
    dtype: np.dtype[Any],
    error: Array,
    result: Array,
    *,
    only_sums: bool = False,
) -> tuple[ErrorScale, Array]:
    """Return the error scale of an activation's results, and the greatest error of the sums.

    Args:
        error: the activation's own error at the sums.
        only_sums: as in `fused_error_scale`.
    """
    with np.errstate(all="ignore"):
        own: Array = np.where(np.isfinite(error), error, 0.0) / STEP
        before = error_scale
        exact = error_scale.exact
        if dtype == np.float16:
            before = error_scale.holding(store_sizes(values, exact))
        sums = np.where(exact, 0.0, error_scale.sums)
        reach = sums * (MOST_ROUNDINGS * STEP)
        if before.stored is not None:
            reach += before.stored * FLOAT16_EPSILON
        # Errors of sums of equal terms may exceed `MOST_ROUNDINGS`.
        far = reach + sums * (3 * MOST_ROUNDINGS * STEP)
        steepness = local_slope(activation, values - far, values + far)
        if activation["operator"] == "ACTIVATION_CELU" and activation["Alpha"] < 0:
            # With a negative Alpha, the exponential grows for negative arguments.
            steepness = np.maximum(steepness, np.exp(np.minimum(values, 0) / activation["Alpha"]))
        if np.isinf(slope(activation)):
            # SCALED_ELU with an infinite Alpha is infinite below 0, and Gamma times x above.
            ends = (fused(values + side * reach, activation) for side in (-1, 1))
            secant = np.abs(np.subtract(*ends)) / (2 * reach)
            steepness = np.where(np.isfinite(secant), secant, steepness)
        scale = steepness * sums + own + np.abs(result)
        others: list[Array] = []
        if dtype == np.float16:
            # A kernel may store a sum beyond FLOAT16's range as 65504 or as infinity.
            others += (fused(held, activation) for held in overflow_results(values))
            if others and only_sums:
                # The error of the activation of 65504, which the sum is held as, may be greater.
                held = np.copysign(LARGEST_FLOAT16, values)
                of_held = ERRORS[activation["operator"]](held, **attributes_of(activation)) / STEP
                limited = np.isfinite(values) & (np.abs(values) > LARGEST_FLOAT16)
                scale = np.where(limited, np.fmax(scale, of_held + np.abs(others[0])), scale)
            elif others:
                unlimited = np.isfinite(values) & ~np.isfinite(others[-1]) & np.isfinite(result)
                scale = np.where(unlimited, ANY_RESULT, scale)
        if np.isinf(slope(activation)):
            # The factor of an infinite Alpha may be 0, or of either sign.
            scale = np.where(
                _at_infinite_slope(values, reach, activation, error), ANY_RESULT, scale
            )
        if activation["operator"] in _JUMPS:
            # A finite sum near the jump may be on either side; at the jump, it counts as exact.
            jump = _JUMPS[activation["operator"]](**attributes_of(activation))
            gap = np.fmin(np.abs(values - jump[0]), np.abs(values - jump[1]))
            near = (gap > 0) & (gap <= reach) & np.isfinite(gap)
            scale = np.where(near, ANY_RESULT, scale)
        infinite = infinite_by_factor(values, activation)
        if infinite is not None:
            others.append(np.where(infinite, np.copysign(np.inf, result), result))
        if error_scale.overflows is not None and not only_sums:
            # If the sum overflows, the activation may return any of its limits.
            scale = np.where(error_scale.overflows, ANY_RESULT, scale)
        scaled = replace(before.scaled(steepness), sums=scale)
        beyond = np.isfinite(error_scale.sums) & (error_scale.sums > LARGEST_FLOAT32)
        if only_sums and error_scale.overflows is not None:
            beyond |= error_scale.overflows
        may_be_nan = np.isnan(result) | beyond
        if beyond.any():
            # 1e39 - 2e39 may be infinity, -infinity or NaN.
            possible = (beyond,) * 3
            if only_sums:
                sides = error_scale.overflow_results(LARGEST_FLOAT32)
                possible = beyond & sides[0], beyond & sides[1], beyond & sides[2]
                may_be_nan = np.isnan(result) | possible[2]
                scaled = _overflowing_by_activation(scaled, beyond, values, reach, activation)
            ends = (
                np.where(where, end, values)
                for where, end in zip(possible, (np.inf, -np.inf, np.nan), strict=True)
                if where.any()
            )
            others += (fused(end, activation) for end in ends)
        if activation["operator"] == "ACTIVATION_RELU" and may_be_nan.any():
            # Measured: some kernels of GEMM with RELU return 0 for NaN.
            others.append(np.where(may_be_nan, 0.0, result))
        may_be_zero = np.isnan(result) & (np.abs(values) <= reach) & np.isfinite(reach)
        if may_be_zero.any():
            # A factor of NaN applies to negative sums alone: -5e-8 may be held as 0 in FLOAT16.
            others.append(fused(np.where(may_be_zero, 0.0, values), activation))
        return scaled.with_others(others, dtype), reach


def _overflowing_by_activation(
    scaled: ErrorScale,
    beyond: Array,
    values: Array,
    reach: Array,
    activation: Mapping[str, Any],
) -> ErrorScale:
    """Return the error scale of results that overflow only if the activation of a finite sum does.

    Args:
        scaled: the error scale of the results.
        beyond: the sums that may overflow. For others, any infinity and NaN stay permitted.
        values: the sums.
        reach: the greatest errors of the sums.
    """
    finite = np.clip(np.nan_to_num(values), -LARGEST_FLOAT32, LARGEST_FLOAT32)
    error = np.where(np.isfinite(reach), reach, 0.0)
    ends = [fused(finite + side * error, activation) for side in (-1, 0, 1)]
    least, greatest = np.fmin.reduce(ends), np.fmax.reduce(ends)
    by_sign = np.where(beyond, least, -np.inf), np.where(beyond, greatest, np.inf)
    return replace(scaled, by_sign=by_sign)


def _at_infinite_slope(
    values: Array, reach: Array, activation: Mapping[str, Any], error: Array
) -> Array:
    """Return where errors of the sums decide between infinity, -infinity, NaN and a finite result.

    Args:
        error: the activation's own error at the sums, ANY_RESULT where NaN is in doubt.
    """
    low, high = values - reach, values + reach
    nearest_to_zero = np.minimum(np.maximum(low, 0.0), high)
    # All finite results count as equal here.
    at_low, *others = (
        np.where(np.isfinite(end), 0.0, end)
        for end in (fused(argument, activation) for argument in (low, nearest_to_zero, high))
    )
    undecided: Array = np.equal(error, ANY_RESULT)
    for other in others:
        undecided |= (at_low != other) & ~(np.isnan(at_low) & np.isnan(other))
    return undecided & np.isfinite(values)


def _spanned_where_steep(
    scaled: ErrorScale, values: Array, reach: Array, activation: Mapping[str, Any]
) -> ErrorScale:
    """Return the error scale with a span where a steep slope takes it beyond FLOAT32.

    The span encloses the activation's results for the sums, and for the sums minus and plus
    `reach`. Without it, the rule would take the sum for one that overflowed.
    """
    steep = np.isfinite(scaled.sums) & (scaled.sums > LARGEST_FLOAT32) & np.isfinite(values)
    if not steep.any():
        return scaled
    ends = [fused(values + side * reach, activation) for side in (-1, 0, 1)]
    span = Span.around(*ends)
    return scaled.spanned(Span(*(np.where(steep, end, np.nan) for end in span.ends)))
