"""The optional ScaleBias of operators: each element is multiplied and added to before the function.

Floating-point and integer tensors are scaled in FLOAT32. Scale 1 with Bias 0 changes nothing, not
even what FLOAT32 cannot hold.

Source: the page of DML_SCALE_BIAS; the scaling of integers was measured. DirectML 1.15.4 on the
software adapter of the lab rounds product and sum one after the other, alike in IDENTITY and EXP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = [
    "ScaleBias",
    "function_interval",
    "is_identity",
    "scaled",
    "scaled_function",
    "scaled_interval",
    "unary",
    "unary_interval",
]

ScaleBias = Mapping[str, float]
"""The fields Scale and Bias by name."""

_TINY: Final = float(np.finfo(np.float32).tiny)
_LARGEST: Final = float(np.finfo(np.float32).max)


def is_identity(scale_bias: ScaleBias | None) -> bool:
    """Return whether the scale is 1 and the bias is 0."""
    return scale_bias is None or (scale_bias["Scale"] == 1 and scale_bias["Bias"] == 0)


def scaled(tensor: Array, scale_bias: ScaleBias | None) -> Array:
    """Return `x * Scale + Bias` as FLOAT64; Scale and Bias are FLOAT32 numbers, and so is that."""
    if scale_bias is None or is_identity(scale_bias):
        return wide(tensor)
    with np.errstate(all="ignore"):
        product, total = _terms(tensor, scale_bias)
        # A product that overflows does so before an infinite Bias is added.
        if not math.isfinite(scale_bias["Bias"]):
            total = product.astype(np.float32).astype(np.float64) + scale_bias["Bias"]
        rounded: Array = total.astype(np.float32).astype(np.float64)
        return rounded


def scaled_interval(tensor: Array, scale_bias: ScaleBias | None) -> tuple[Array, Array]:
    """Return the least and the greatest `x * Scale + Bias` that FLOAT32 arithmetic may give.

    Product and sum are rounded either way or at once, unless FLOAT32 holds them; subnormal ones may
    be zero, and either may overflow.
    """
    exact = scaled(tensor, scale_bias)
    if scale_bias is None or is_identity(scale_bias):
        return exact, exact
    with np.errstate(all="ignore"):
        product, total = _terms(tensor, scale_bias)
        terms = np.abs(product) * (2 if tensor.dtype.kind in "iu" else 1) + np.abs(total)
        flushed = (product != 0) & ((np.abs(product) < _TINY) | (np.abs(total) < _TINY))
        bias = single(scale_bias["Bias"])
        held = (total - product == bias) & (total - bias == product)
        held &= _is_single(wide(tensor)) & _is_single(product) & _is_single(total)
        room = np.where(held, 0.0, terms * STEP) + np.where(flushed, _TINY, 0.0)
        finite = np.isfinite(room)
        low, high = np.where(finite, total - room, exact), np.where(finite, total + room, exact)
        low[np.minimum(low, product) < -_LARGEST] = -np.inf
        high[np.maximum(high, product) > _LARGEST] = np.inf
    return low, high


def _terms(tensor: Array, scale_bias: ScaleBias) -> tuple[Array, Array]:
    """Return `x * Scale` and `x * Scale + Bias` as FLOAT64."""
    product = wide(tensor) * single(scale_bias["Scale"])
    return product, product + single(scale_bias["Bias"])


def _is_single(values: Array) -> Array:
    """Return which FLOAT64 numbers are FLOAT32 numbers as well."""
    same: Array = values.astype(np.float32) == values
    return same


def scaled_function(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
    *,
    rounds_once: bool = False,
) -> Array:
    """Return a function of the scaled elements in the output's type.

    Args:
        function: of FLOAT64 numbers.
        tensor: the elements.
        scale_bias: what is done to them first.
        output: the output; integers are truncated before the function, and clamped after it.
        rounds_once: whether the function rounds the exact result, if at all, so that FLOAT64 gives
            floating-point numbers nothing more.
    """
    dtype = output.DataType.dtype
    same_type = tensor.dtype.kind == "f" and tensor.dtype == dtype
    if rounds_once and same_type and is_identity(scale_bias):
        with np.errstate(all="ignore"):
            return function(tensor)

    def computed(elements: Array) -> Array:
        values = scaled(elements, scale_bias)
        result = function(_whole(values) if tensor.dtype.kind in "iu" else values)
        return result if dtype == np.float32 else cast(result, output)

    with np.errstate(all="ignore"):
        return in_blocks(computed, tensor, dtype=dtype)


def function_interval(
    function: Callable[[Array], Array],
    tensor: Array,
    scale_bias: ScaleBias | None,
    output: TensorDesc,
    *,
    error: Callable[[Array], Array | float] = lambda x: 0.0,
    domain: tuple[float, float] = (-math.inf, math.inf),
    at_zero: Sequence[float] = (),
) -> tuple[Array, Array]:
    """Return what a function of the scaled elements may give.

    Args:
        function: of FLOAT64 numbers; monotone on either side of zero. Where only some arguments in
            reach make it NaN, any result is right.
        tensor: the elements.
        scale_bias: what is done to them first.
        output: the output, whose type the results have; integers are truncated before the function.
        error: how far the function itself may be off before its result is rounded.
        domain: where the function is defined; the ends of the argument's interval are kept in it.
        at_zero: the function's value at zero where it turns, or both ends of its pole.
    """
    low, high = scaled_interval(tensor, scale_bias)
    if low is high:
        return _results(function, low, output, error)
    exact = scaled(tensor, scale_bias)
    with np.errstate(all="ignore"):
        arguments = [np.clip(end, *domain) for end in (low, high)]
    lowest, highest = _results(function, exact, output, error)
    for argument in arguments:
        least, greatest = _results(function, argument, output, error)
        lowest, highest = np.fmin(lowest, least), np.fmax(highest, greatest)
    around_zero = (low <= 0) & (high >= 0) & (low != high)
    for value in at_zero:
        lowest = np.where(around_zero, np.fmin(lowest, lowest.dtype.type(value)), lowest)
        highest = np.where(around_zero, np.fmax(highest, highest.dtype.type(value)), highest)
    if output.DataType.dtype.kind != "f":
        return lowest, highest
    with np.errstate(all="ignore"):
        undefined = [np.isnan(function(argument)) for argument in (low, exact, high)]
    return anything_where(
        np.logical_or.reduce(undefined) & ~np.logical_and.reduce(undefined), (lowest, highest)
    )


def unary(
    name: str,
    function: Callable[[Array], Array],
    words: str,
    *,
    measured: str = "",
    rounds_once: bool = False,
) -> Callable[..., Array]:
    """Return the reference function of an operator with one floating-point input and a ScaleBias.

    Args:
        name: the operator's, as in `element_wise_exp`.
        function: of FLOAT64 numbers.
        words: what it returns.
        measured: what is not on the operator's page.
        rounds_once: as `scaled_function` has it.
    """

    def reference(
        InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
    ) -> Array:
        return scaled_function(
            function, InputTensor, ScaleBias, OutputTensor, rounds_once=rounds_once
        )

    reference.__name__ = name
    reference.__doc__ = f"""InputTensor {{D0, ...}} -> OutputTensor {{D0, ...}}; FLOAT32, FLOAT16

    Return {words}.

    Source: the page of DML_{name.upper()}_OPERATOR_DESC{f"; {measured}" if measured else ""}.
    """
    return reference


def unary_interval(
    name: str,
    ends: Callable[[Array, ScaleBias | None, TensorDesc], tuple[Array, Array]],
    words: str,
) -> Callable[..., tuple[Array, Array]]:
    """Return the function of the least and the greatest right values of such an operator.

    Args:
        name: the operator's, as in `element_wise_exp`.
        ends: of the input, the ScaleBias and the output, as `function_interval` has them.
        words: what it returns, and why that is right.
    """

    def interval(
        InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
    ) -> tuple[Array, Array]:
        return ends(InputTensor, ScaleBias, OutputTensor)

    interval.__name__ = f"{name}_interval"
    interval.__doc__ = f"Return {words}."
    return interval


def _whole(values: Array) -> Array:
    """Return numbers without their fraction, and 0 for NaN."""
    whole: Array = np.trunc(values)
    whole[np.isnan(whole)] = 0
    return whole


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
        whole = cast(function(_whole(argument)), output)
    return whole, whole
