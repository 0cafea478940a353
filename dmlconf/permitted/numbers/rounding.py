"""Right results of arithmetic that may round in more than one way, overflow or underflow.

Kernels compute in FLOAT32 and then store FLOAT32 or FLOAT16. Direct3D permits to round to nearest
and toward zero, both in FLOAT32 arithmetic and in the conversion to FLOAT16.

Source: Direct3D 11.3 functional specification, 3.1 (arithmetic) and 3.2 (conversion).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = [
    "ANY_RESULT",
    "HALF_STEP",
    "MOST_ROUNDINGS",
    "STEP",
    "anything_where",
    "finite_or_zero",
    "finite_sizes",
    "finite_sum",
    "greatest_product",
    "or_any_result",
    "overflows",
    "rounded_interval",
    "sizes_of",
    "truncated",
    "underflow_error",
]

MOST_ROUNDINGS: Final = 256.0
"""A bound of a sum's error, in units of STEP times its error scale. The rule `accumulate` permits
194 of these units for 2^14 terms that vary (see `terms_vary`), and fewer for fewer terms."""

ANY_RESULT: Final = 2.0**400
"""An error scale, or an error for `rounded_interval`, with which any result is right."""

STEP: Final = 2.0**-23
"""The greatest relative error of one FLOAT32 operation that rounds toward zero."""

HALF_STEP: Final = 2.0**-24
"""The greatest relative error of one FLOAT32 operation that rounds to nearest. The rule
`accumulate` counts the errors of sums in units of it."""

_SUBNORMAL_STEPS: Final = 2.0**-148
"""The greatest error of two roundings toward zero of subnormal FLOAT32 numbers."""

_NEAR_ZERO: Final = 2.0**-124
"""Results of a size below this, 4 times 2^-126, may also be off by `_SUBNORMAL_STEPS`."""

_SINGLE: Final = np.dtype(np.float32)


def or_any_result(error_scale: Array, sizes: Array) -> Array:
    """Return the error scale, with ANY_RESULT where sizes of partial sums overflow FLOAT32."""
    return np.where(overflows(sizes), ANY_RESULT, error_scale)


def overflows(sizes: Array, dtype: np.dtype[Any] = _SINGLE) -> Array:
    """Return where finite sizes exceed the largest number of a data type, by default FLOAT32."""
    beyond: Array = np.isfinite(sizes) & (sizes > float(np.finfo(dtype).max))
    return beyond


def sizes_of(tensor: Array) -> Array:
    """Return the absolute values, FLOAT64."""
    size: Array = np.abs(tensor, dtype=np.float64)
    return size


def finite_sum(sizes: Array, over: tuple[int, ...] = (-1,), *, keepdims: bool = False) -> Array:
    """Return the sum of the finite sizes along axes."""
    total: Array = sizes.sum(over, keepdims=keepdims, where=np.isfinite(sizes))
    return total


def finite_or_zero(tensor: Array) -> Array:
    """Return finite elements, and 0 for others, FLOAT64."""
    return np.where(np.isfinite(tensor), tensor.astype(np.float64), 0.0)


def finite_sizes(tensor: Array) -> Array:
    """Return the absolute values of finite elements, and 0 for others, FLOAT64."""
    return np.where(np.isfinite(tensor), np.abs(tensor, dtype=np.float64), 0.0)


def greatest_product(*factors: Array) -> Array:
    """Return the greatest partial product that begins with the first factor, in any order.

    It is the product of the absolute values of the first factor and of all others that exceed 1.
    For 1e30, 1e20 and 1e-20 it is 1e50, which overflows, although the result 1e30 does not. Other
    factors that are infinite or NaN count as 1, since they do not overflow.
    """
    product = np.abs(factors[0])
    for factor in factors[1:]:
        size = np.abs(factor)
        product = product * np.where(np.isfinite(size), np.maximum(size, 1.0), 1.0)
    return product


def underflow_error(*factors: Array) -> Array:
    """Return how far a product may be off because a product of some factors is subnormal.

    A subnormal number has fewer digits, or is taken for zero, so the error is the whole product's
    absolute value, FLOAT64. It is 0 where no product of some factors is below 2^-126, where a
    factor is 0, and where the whole product is not finite.

    Source: Direct3D 11.3 functional specification, 3.1: subnormal results may be flushed.
    """
    product: Array = np.ones(())
    least: Array = product
    for factor in factors:
        size = np.abs(factor, dtype=np.float64)
        product = product * size
        least = least * np.minimum(size, 1.0)
    small = (least > 0) & (least < LEAST_NORMAL_FLOAT32) & np.isfinite(product)
    error: Array = np.where(small, product, 0.0)
    return error


@np.errstate(all="ignore")
def rounded_interval(exact: Array, error: Array | float, dtype: np.dtype[Any]) -> Interval:
    """Return the least and the greatest right value of each element, in the result's type.

    If an error is permitted, FLOAT32 results close to zero may be off by another 2^-148, and by
    underflow may be zero. In FLOAT16, a lower end below -65504 before it is rounded becomes
    -infinity, and an upper end above 65504 infinity.

    Args:
        exact: what an infinitely precise computation gives, FLOAT64.
        error: how far the value may be from `exact` before it is rounded for the last time, not
            negative. It counts as 0 where it or `exact` is not finite. If it is ANY_RESULT, any
            value is right.
        dtype: the result's type. A FLOAT64 result is not rounded, a FLOAT32 one is rounded once,
            and a FLOAT16 one may be rounded to FLOAT32 first.
    """
    if isinstance(error, float) and error == 0:
        low, high = exact, exact + 0.0
        rounded = _either_way(exact, dtype)
        lowest, highest = np.minimum.reduce(rounded), np.maximum.reduce(rounded)
        highest[exact == 0] = 0
    else:
        finite = np.isfinite(exact) & np.isfinite(error)
        reach = np.where(finite, error, 0.0)
        if dtype == np.float32:
            # All subnormal numbers have the same ULP.
            reach += np.where((reach > 0) & (np.abs(exact) < _NEAR_ZERO), _SUBNORMAL_STEPS, 0.0)
        low, high = exact - reach, exact + reach
        lowest = np.minimum.reduce(_either_way(low, dtype))
        highest = np.maximum.reduce(_either_way(high, dtype))
        if dtype == np.float32:
            # A result that comes out subnormal may be flushed, though the exact one is normal.
            tiny = np.finfo(dtype).tiny
            lowest[(low > 0) & (low < tiny) & (exact >= tiny)] = 0
            highest[(high < 0) & (high > -tiny) & (exact <= -tiny)] = 0
    if dtype == np.float16:
        # Measured: some stores turn whatever exceeds the largest number into infinity.
        largest = np.finfo(dtype).max
        lowest[low < -largest] = -np.inf
        highest[high > largest] = np.inf
    open_to_choice = np.equal(error, ANY_RESULT)
    if np.any(open_to_choice):
        return anything_where(open_to_choice, (lowest, highest))
    return lowest, highest


def _either_way(values: Array, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """Return FLOAT64 values rounded toward zero, where finite ones stay finite, and to nearest.

    To FLOAT16 they are rounded to nearest at once and by way of FLOAT32: 102.90625004 is 102.9375
    at once, and 102.875 by way of 102.90625, which is half-way. As FLOAT64 they are not rounded.
    """
    if dtype == np.float64:
        return (values,)
    by_single = values.astype(np.float32)
    if dtype == np.float32:
        return truncated(values, dtype), by_single
    return truncated(values, dtype), by_single.astype(dtype), values.astype(dtype)


@np.errstate(over="ignore")
def truncated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values rounded toward zero to FLOAT32 or FLOAT16; finite ones stay finite."""
    cut = values.astype(dtype)
    beyond = np.abs(cut) > np.abs(values)
    beyond &= np.isfinite(values)
    # The bits of the next number toward zero are those of the integer before.
    bits = cut.view(f"u{dtype.itemsize}")
    bits -= beyond
    return cut


def anything_where(undefined: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the interval, made the least to the greatest value for undefined elements.

    These are infinities, or the ends of an integer type.
    """
    lowest, highest = ends
    dtype = lowest.dtype
    if dtype.kind == "f":
        least, most = dtype.type(-np.inf), dtype.type(np.inf)
    else:
        least, most = (dtype.type(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    return np.where(undefined, least, lowest), np.where(undefined, most, highest)
