"""Effects of driver defects: wrong formulas of element-wise functions and casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.strength.drivers.computation import Arrays, Computation, Effect, Settings
from dmlconf.tensors.datatypes import Array

__all__ = ["FUNCTION_FORMULAS"]

_Formula = Callable[[Array, Array], Array]
"""Computes an array from the first input and the right output."""


def _first(right: Computation) -> tuple[str, Array, Array] | None:
    """Return the first output's name, the first input, and the first output.

    None if there is no input, or if the sizes differ.
    """
    name, output = next(iter(right.outputs.items()))
    source = next(iter(right.inputs.values()), None)
    return None if source is None or source.shape != output.shape else (name, source, output)


def _unary(formula: _Formula) -> Effect:

    def effect(right: Computation, settings: Settings) -> Arrays | None:
        result = _first(right)
        if result is None:
            return None
        name, source, output = result
        with np.errstate(all="ignore"):
            return {name: formula(source, output).astype(output.dtype)}

    return effect


def _binary(formula: Callable[[Array, Array, Array], Array]) -> Effect:
    """Return an effect of a formula over two inputs of the output's sizes and the right output."""

    def effect(right: Computation, settings: Settings) -> Arrays | None:
        name, output = next(iter(right.outputs.items()))
        inputs = [array for array in right.inputs.values() if array.shape == output.shape]
        if len(inputs) < 2:
            return None
        with np.errstate(all="ignore"):
            return {name: formula(inputs[0], inputs[1], output).astype(output.dtype)}

    return effect


def _overflow_at(values: Array) -> float:
    """Return roughly where an exponential overflows the array's type."""
    return {2: 11.0, 4: 88.0}.get(values.itemsize, 709.0)


def _truncated_digits(source: Array, output: Array) -> Array:
    toward = np.where(np.abs(output.astype(np.float64)) > np.abs(source.astype(np.float64)), -1, 0)
    return (output.view(np.int16) + toward.astype(np.int16)).view(np.float16)


def _log_loses_digits(source: Array, output: Array) -> Array:
    steps = np.round(np.log2(source.astype(np.float64)) * 2**16) / 2**16
    return np.where(np.isfinite(steps), steps * np.log(2), output)


def _gelu_by_tanh(source: Array, output: Array) -> Array:
    x = source.astype(np.float64)
    result: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return result


def _is_large(source: Array, share: float) -> Array:
    return np.abs(source.astype(np.float64)) > float(np.finfo(source.dtype).max) * share


def _exponents(right: Computation) -> Array | float | None:
    exponent = right.inputs.get("ExponentTensor", right.desc.get("Exponent"))
    return exponent if isinstance(exponent, float | np.ndarray) else None


def _power(formula: Callable[[Array, Any, Array], Array]) -> Effect:
    def effect(right: Computation, settings: Settings) -> Arrays | None:
        result, exponent = _first(right), _exponents(right)
        if result is None or exponent is None:
            return None
        name, base, output = result
        with np.errstate(all="ignore"):
            return {name: formula(base, exponent, output).astype(output.dtype)}

    return effect


def _sigmoid_by_tanh(source: Array, output: Array) -> Array:
    half = np.float32(0.5)
    result: Array = half + half * np.tanh(half * source.astype(np.float32))
    return result


def _power_in_float16(base: Array, exponent: Any, output: Array) -> Array:
    logarithm = np.log2(np.abs(base)).astype(np.float16)
    power = np.exp2((logarithm * np.asarray(exponent, np.float16)).astype(np.float32))
    usual = (base > 0) & np.isfinite(output) & (output != 0)
    return np.where(usual, power, output)


def _modulus_by_reciprocal(right: Computation, settings: Settings) -> Arrays | None:
    a, b = (right.inputs[name].astype(np.float32) for name in ("ATensor", "BTensor"))
    whole = np.floor if "FLOOR" in right.case.operator_name else np.trunc
    with np.errstate(all="ignore"):
        result = a - b * whole(a * (np.float32(1) / b))
        return {
            "OutputTensor": np.where(np.isfinite(result), result, right.outputs["OutputTensor"])
        }


def _cast(change: _Formula) -> Effect:
    """Return an effect that casts what `change` makes of the input and the right output."""

    def effect(right: Computation, settings: Settings) -> Arrays | None:
        with np.errstate(all="ignore"):
            changed = change(right.inputs["InputTensor"], right.outputs["OutputTensor"])
        return right.again({"InputTensor": changed.astype(right.inputs["InputTensor"].dtype)})

    return effect


def _saturated(source: Array, output: Array) -> Array:
    info = np.iinfo(output.dtype)
    low, high = np.iinfo(source.dtype).min, np.iinfo(source.dtype).max
    return np.clip(source, max(info.min, low), min(info.max, high))


def _negative_zero_counts(right: Computation, settings: Settings) -> Arrays | None:
    source = right.inputs["InputTensor"]
    negative = (source == 0) & np.signbit(source)
    return right.again({"InputTensor": np.where(negative, source.dtype.type(1), source)})


FUNCTION_FORMULAS: Final[Mapping[str, Effect]] = {
    "cast_by_int16": _cast(lambda x, y: np.clip(x, -32768, 32767)),
    "cast_rounds": _cast(lambda x, y: np.rint(x)),
    "cast_saturates": _cast(_saturated),
    "cast_truncates_digits": _unary(_truncated_digits),
    "exponent_off": _unary(lambda x, y: np.where(y != 0, y + 2.0**26, y)),
    "floor_truncates": _unary(lambda x, y: np.trunc(x)),
    "floored_quotient": _binary(
        lambda a, b, y: np.where(b != 0, np.floor_divide(a, np.where(b == 0, 1, b)), y)
    ),
    "gelu_by_tanh": _unary(_gelu_by_tanh),
    "infinite_is_largest": _unary(
        lambda x, y: np.where(np.isinf(y), np.copysign(np.finfo(y.dtype).max, y), y)
    ),
    "large_is_infinite": _unary(lambda x, y: np.where(x > 11, np.inf, y)),
    "log_loses_digits": _unary(_log_loses_digits),
    "mean_overflows": _binary(lambda a, b, y: (a + b) / 2),
    "modulus_by_reciprocal": _modulus_by_reciprocal,
    "multiples_give_divisor": _binary(lambda a, b, y: np.where((y == 0) & (a != 0), b, y)),
    "nan_compares_true": _binary(lambda a, b, y: np.where(np.isnan(a) | np.isnan(b), 1, y)),
    "nan_passes": _unary(lambda x, y: np.where(np.isnan(x), np.nan, y)),
    "negative_quotient_is_zero": _unary(lambda x, y: np.where(y < 0, 0, y)),
    "negative_zero_counts": _negative_zero_counts,
    "no_argument_reduction": _unary(lambda x, y: np.where(np.abs(x) > 804, 0, y)),
    "no_negative_zero": _unary(lambda x, y: np.where(y == 0, np.abs(y), y)),
    "power_in_float16": _power(_power_in_float16),
    "power_of_negative_is_nan": _power(lambda x, e, y: np.where(x < 0, np.nan, y)),
    "quadrant_ignored": _binary(lambda a, b, y: np.where(b < 0, np.arctan(a / b), y)),
    "sigmoid_by_tanh": _unary(_sigmoid_by_tanh),
    "sigmoid_overflow": _unary(lambda x, y: np.where(x > _overflow_at(y), y.dtype.type(np.nan), y)),
    "small_is_zero": _unary(lambda x, y: np.where(np.abs(x) < 1e-4, 0, y)),
    "softplus_overflow": _unary(lambda x, y: np.where(x > _overflow_at(y), np.inf, y)),
    "softsign_overflow": _unary(lambda x, y: np.where(_is_large(x, 0.25), 0, y)),
    "tanh_saturates": _unary(
        lambda x, y: np.where(np.abs(x) > 4, np.sign(y) * np.ceil(np.abs(y) * 256) / 256, y)
    ),
    "zero_to_zero_is_nan": _power(lambda x, e, y: np.where((x == 0) & (e == 0), np.nan, y)),
}
