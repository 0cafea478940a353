"""Permitted results of `x * Scale + Bias`, and of functions of such scaled elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.element_wise.scale_bias import (
    ScaleBias,
    is_identity,
    product_and_sum,
    scaled,
    whole_part,
)
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = [
    "function_interval",
    "scaled_interval",
    "unary_interval",
]

_MOST_TOGETHER: Final = 1 << 12
"""For up to this many elements, one call of a function for several arguments takes less time than
several calls."""


def scaled_interval(tensor: Array, scale_bias: ScaleBias | None) -> Interval:
    """Return the least and the greatest `x * Scale + Bias` of FLOAT32 arithmetic, in FLOAT64.

    Where FLOAT32 does not hold the product or the sum, kernels round each of them up or down, or
    round the sum only. A subnormal product or sum may be flushed to zero, and either may overflow.
    Without scaling, both ends are the same array of the elements.
    """
    exact = scaled(tensor, scale_bias)
    if scale_bias is None or is_identity(scale_bias):
        return exact, exact
    with np.errstate(all="ignore"):
        product, total = product_and_sum(tensor, scale_bias)
        terms = np.abs(product) * (2 if tensor.dtype.kind in "iu" else 1) + np.abs(total)
        flushed = _is_subnormal(product) | ((product != 0) & _is_subnormal(total))
        bias = single(scale_bias["Bias"])
        held = (total - product == bias) & (total - bias == product)
        held &= _is_single(wide(tensor)) & _is_single(product) & _is_single(total)
        error = np.where(held, 0.0, terms * STEP) + np.where(flushed, LEAST_NORMAL_FLOAT32, 0.0)
        finite = np.isfinite(error)
        low, high = np.where(finite, total - error, exact), np.where(finite, total + error, exact)
        low[np.minimum(low, product) < -LARGEST_FLOAT32] = -np.inf
        high[np.maximum(high, product) > LARGEST_FLOAT32] = np.inf
    return low, high


def _is_subnormal(values: Array) -> Array:
    subnormal: Array = (values != 0) & (np.abs(values) < LEAST_NORMAL_FLOAT32)
    return subnormal


def _is_single(values: Array) -> Array:
    same: Array = values.astype(np.float32) == values
    return same


def function_interval(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
    *,
    error: Callable[[Array], Array | float] = lambda x: 0.0,
    domain: tuple[float, float] = (-math.inf, math.inf),
    at_zero: Sequence[float] = (),
) -> Interval:
    """Return the permitted interval of a function of the scaled elements.

    Args:
        function: a function of FLOAT64 numbers; monotone on either side of zero. It is computed for
            the scaled element and for both ends of its interval. Any floating-point result is right
            where some but not all of the three results are NaN.
        output: the output. For an integer type, scaled elements are truncated before the function.
        error: the error of the function before its result is rounded; unused for an integer type.
        domain: where the function is defined; the ends of the interval are clamped to the domain.
        at_zero: the function's values at zero if it has a minimum or a pole there.
    """
    low, high = scaled_interval(tensor, scale_bias)
    if low is high:
        return _results(function, low, output, error)
    exact = scaled(tensor, scale_bias)
    with np.errstate(all="ignore"):
        arguments = [exact, *(np.clip(end, *domain) for end in (low, high))]
    lowest, highest = _hull_of_results(function, arguments, output, error)
    around_zero = (low <= 0) & (high >= 0) & (low != high)
    for value in at_zero:
        lowest = np.where(around_zero, np.fmin(lowest, lowest.dtype.type(value)), lowest)
        highest = np.where(around_zero, np.fmax(highest, highest.dtype.type(value)), highest)
    if output.DataType.dtype.kind != "f":
        return lowest, highest
    with np.errstate(all="ignore"):
        undefined = [np.isnan(function(argument)) for argument in (low, exact, high)]
    in_doubt = np.logical_or.reduce(undefined) & ~np.logical_and.reduce(undefined)
    # Both ends may lie outside of the domain, although arguments between them do not.
    in_doubt |= (low < domain[0]) & (high > domain[1])
    return anything_where(in_doubt, (lowest, highest))


def unary_interval(
    name: str,
    ends: Callable[[Array, ScaleBias | None, TensorDesc], tuple[Array, Array]],
    words: str,
) -> Callable[..., tuple[Array, Array]]:
    """Return the `..._interval` function of an operator that scales elements first.

    Args:
        name: the operator's name in lower case, such as `element_wise_exp`.
        ends: computes the interval from the input, its scale and bias, and the output's desc.
        words: what the function's docstring says after "Return the interval of".
    """

    def interval(
        InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
    ) -> tuple[Array, Array]:
        return ends(InputTensor, ScaleBias, OutputTensor)

    interval.__name__ = f"{name}_interval"
    interval.__doc__ = f"Return the interval of {words}."
    return interval


def _hull_of_results(
    function: Callable[[Array], Array],
    arguments: Sequence[Array],
    output: TensorDesc,
    error: Callable[[Array], Array | float],
) -> Interval:
    first = arguments[0]
    alike = all(each.dtype == first.dtype and each.shape == first.shape for each in arguments)
    if alike and output.DataType.is_float and first.size <= _MOST_TOGETHER:
        ends = _results(function, np.stack(arguments), output, error)
    else:
        results = [_results(function, each, output, error) for each in arguments]
        ends = np.stack([low for low, _ in results]), np.stack([high for _, high in results])
    return np.fmin.reduce(ends[0]), np.fmax.reduce(ends[1])


def _results(
    function: Callable[[Array], Array],
    argument: Array,
    output: TensorDesc,
    error: Callable[[Array], Array | float],
) -> tuple[Array, Array]:
    dtype = output.DataType.dtype
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            return rounded_interval(function(argument), error(argument), dtype)
        whole = cast(function(whole_part(argument)), output)
    return whole, whole
