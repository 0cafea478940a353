"""Powers, and the inverse tangent of two tensors.

Powers of real numbers are `exp2(y * log2(|x|))`, negative for a negative base and an odd exponent,
and 0 for the base 0 and any exponent. Integers to the power of integers are multiplied.

An `..._interval` function takes the arguments of its operator and returns the least and the
greatest right value of each element.

Source: the operators' pages; special numbers, overflow of integers and the truncation of scaled
integers were measured; Direct3D 11.3 functional specification, 22.10 (exp, log).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.arithmetic import LARGEST_DIVISOR
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.element_wise.scale_bias import ScaleBias, scaled, scaled_interval
from dmlconf.reference.numbers.accuracy import EXP2_ERROR, LOG2_ERROR
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import wide
from dmlconf.reference.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.tensors.datatypes import Array

__all__ = [
    "element_wise_atan_yx",
    "element_wise_atan_yx_candidates",
    "element_wise_constant_pow",
    "element_wise_constant_pow_interval",
    "element_wise_pow",
    "element_wise_pow_interval",
]

_ARCTANGENT: Final = 2.0**-16
"""The error of the polynomial of Abramowitz and Stegun, 4.4.47, 1e-5, and of a quotient."""

_LARGEST_HALF: Final = float(np.finfo(np.float16).max)

_ALL_EVEN: Final = 2.0**24
"""From here on every FLOAT32 number is even."""

_TINY: Final = float(np.finfo(np.float32).tiny)

_WORD: Final = 32
"""The bits of the integers that kernels compute with."""

Ends = tuple[Array, Array]
"""The least and the greatest value of each element."""


def element_wise_pow(
    InputTensor: Array, ExponentTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...}, ExponentTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16,
    INT32 to INT8, UINT32 to UINT8

    Return `x ^ y`; ScaleBias applies to both. Integers that are scaled are truncated first.

    Source: the page of DML_ELEMENT_WISE_POW_OPERATOR_DESC; that exponents are scaled was measured.
    """
    function = _whole_power if _are_integers(InputTensor, ExponentTensor) else _real_power

    def computed(*tensors: Array) -> Array:
        base, exponent = (_operand(tensor, ScaleBias) for tensor in tensors)
        return function(base, exponent, OutputTensor)

    return in_blocks(computed, InputTensor, ExponentTensor, dtype=OutputTensor.DataType.dtype)


def element_wise_pow_interval(
    InputTensor: Array, ExponentTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Ends:
    """Return the powers that rounding permits.

    Integers of 8 and 16 bits that do not hold the power may be anything. With exponents of 8 or 16
    bits, FLOAT32 powers that FLOAT16 does not hold may be infinite.

    Source: measured.
    """
    tensors = InputTensor, ExponentTensor
    bases, exponents = (_operand_interval(tensor, ScaleBias) for tensor in tensors)
    if _are_integers(*tensors):
        return _whole_power_interval(bases, exponents, OutputTensor)
    exact = tuple(_operand(tensor, ScaleBias) for tensor in tensors)
    lowest, highest = _power_interval(exact, bases, exponents, OutputTensor)
    if InputTensor.dtype == np.float32 and ExponentTensor.dtype.itemsize < 4:
        lowest[lowest < -_LARGEST_HALF] = -np.inf
        highest[highest > _LARGEST_HALF] = np.inf
    return lowest, highest


def element_wise_constant_pow(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Exponent: float
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `x ^ Exponent`; ScaleBias applies to the input alone.

    Source: the page of DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC.
    """
    exponent = _constant(Exponent)

    def computed(tensor: Array) -> Array:
        return _real_power(scaled(tensor, ScaleBias), exponent, OutputTensor)

    return in_blocks(computed, InputTensor, dtype=OutputTensor.DataType.dtype)


def element_wise_constant_pow_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Exponent: float
) -> Ends:
    """Return the powers that rounding permits."""
    exponent = _constant(Exponent)
    bases = scaled_interval(InputTensor, ScaleBias)
    exact = scaled(InputTensor, ScaleBias), exponent
    return _power_interval(exact, bases, (exponent, exponent), OutputTensor)


def element_wise_atan_yx(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the angle of the point with y in ATensor and x in BTensor, from -pi to pi.

    Source: the page of DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC.
    """
    return cast(np.arctan2(wide(ATensor), wide(BTensor)), OutputTensor)


def element_wise_atan_yx_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[Ends]:
    """Return the angle with the error of a polynomial; any angle, or NaN, at the origin.

    The quotient may be a product with a reciprocal, which is flushed to zero where it is
    subnormal. Where a tensor holds NaN, which the polynomial may lose, or the quotient of two
    subnormal numbers is taken, anything is right.
    """
    y, x = wide(ATensor), wide(BTensor)
    dtype = OutputTensor.DataType.dtype
    exact = np.arctan2(y, x)
    origin = (y == 0) & (x == 0)
    tiny = np.finfo(np.float32).tiny
    open_ = np.isnan(exact) | (~origin & (np.abs(y) < tiny) & (np.abs(x) < tiny))
    finite = np.isfinite(y) & np.isfinite(x)

    def around(angles: Array) -> Ends:
        least, _ = rounded_interval(np.where(origin, -np.pi, angles), _ARCTANGENT, dtype)
        _, greatest = rounded_interval(np.where(origin, np.pi, angles), _ARCTANGENT, dtype)
        return anything_where(open_, (least, greatest))

    candidates = [around(exact)]
    no_height = np.arctan2(np.copysign(0.0, y), x)
    for divisor, of_zero in ((x, no_height), (y, np.copysign(np.pi / 2, y))):
        flushed = (np.abs(divisor) > LARGEST_DIVISOR) & finite
        if flushed.any():
            candidates.append(around(np.where(flushed, of_zero, exact)))
    if origin.any():
        least, greatest = (np.where(origin, np.nan, end).astype(dtype) for end in candidates[0])
        candidates.append((least, greatest))
    return candidates


def _are_integers(*tensors: Array) -> bool:
    return all(tensor.dtype.kind in "iu" for tensor in tensors)


def _constant(exponent: float) -> Array:
    return np.array(exponent, np.float32).astype(np.float64)


def _operand(tensor: Array, scale_bias: ScaleBias | None) -> Array:
    values = scaled(tensor, scale_bias)
    return _whole(values, tensor.dtype) if _are_integers(tensor) else values


def _operand_interval(tensor: Array, scale_bias: ScaleBias | None) -> Ends:
    low, high = scaled_interval(tensor, scale_bias)
    if _are_integers(tensor):
        return _whole(low, tensor.dtype), _whole(high, tensor.dtype)
    return low, high


def _word(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the integers that kernels compute an integer type with."""
    return np.dtype(np.int32 if dtype.kind == "i" else np.uint32)


def _whole(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers without their fraction, clamped to 32 bits."""
    limits = np.iinfo(_word(dtype))
    clamped: Array = np.clip(np.trunc(np.nan_to_num(values, nan=0.0)), limits.min, limits.max)
    return clamped


def _real_power(base: Array, exponent: Array, output: TensorDesc) -> Array:
    return cast(_power(base, exponent), output)


def _power(base: Array, exponent: Array) -> Array:
    """Return the power of FLOAT64 numbers."""
    with np.errstate(all="ignore"):
        absolute = np.abs(base)
        power: Array = np.power(absolute, exponent)
        if not np.isfinite(exponent).all():
            power[(absolute == 1) & ~np.isfinite(exponent)] = np.nan
        if not np.isfinite(base).all():
            power[(exponent == 0) & ~np.isfinite(base)] = np.nan
        power[base == 0] = 0
        negative = base < 0
        if negative.any():
            half = exponent / 2
            np.negative(power, out=power, where=negative & (np.rint(half) != half))
            whole = (np.rint(exponent) == exponent) & np.isfinite(exponent)
            power[negative & ~whole] = np.nan
        return power


def _power_interval(
    exact: tuple[Array, ...], bases: Ends, exponents: Ends, output: TensorDesc
) -> Ends:
    base, exponent = exact
    power = _power(base, exponent)
    with np.errstate(all="ignore"):
        corners = list(_corners(bases, exponents, np.abs(np.fmod(exponent, 2)) == 1))
        around_zero = (bases[0] < 0) & (bases[1] > 0)
        if around_zero.any():
            pole = np.where(around_zero & (exponent < 0), np.inf, 0.0)
            corners += [np.where(around_zero, end, power) for end in (-pole, 0 * power, pole)]
        subnormal = (base != 0) & (np.abs(base) < _TINY)
        if subnormal.any():
            # Measured: log2 of a subnormal number may be that of about 2^-127.
            least_normal = _power(np.copysign(_TINY, base), exponent)
            corners += [np.where(subnormal, end, power) for end in (0 * power, least_normal)]
        low, high = np.fmin.reduce([*corners, power]), np.fmax.reduce([*corners, power])
        # The base 0 is distinguished from the others.
        zero = (base == 0) & (bases[0] == bases[1])
        low, high = (np.where(zero | np.isnan(power), power, end) for end in (low, high))
    dtype = output.DataType.dtype
    if dtype.kind in "iu":
        return cast(low, output), cast(high, output)
    # Beyond this all FLOAT32 exponents are even.
    signless = (base < 0) & (np.abs(exponent) >= _ALL_EVEN) & np.isfinite(exponent)
    ends = rounded_interval(low, 0.0, dtype)[0], rounded_interval(high, 0.0, dtype)[1]
    return anything_where(signless, ends) if signless.any() else ends


def _corners(bases: Ends, exponents: Ends, odd: Array) -> Iterator[Array]:
    """Yield the powers of the ends of two intervals, less and more by the error of FLOAT32."""
    for base in bases:
        for exponent in exponents:
            absolute = np.abs(base)
            power = np.power(absolute, exponent)
            logarithm = np.abs(np.log2(absolute))
            of_log2 = np.maximum(logarithm, 1.0) * LOG2_ERROR + logarithm * 2 * STEP
            relative = np.expm1(np.abs(exponent) * of_log2 * np.log(2)) + EXP2_ERROR
            sign = np.where((base < 0) & odd, -1.0, 1.0)
            yield sign * power * np.maximum(1 - relative, 0.0)
            yield sign * power * (1 + relative)


def _whole_power(base: Array, exponent: Array, output: TensorDesc) -> Array:
    """Return the power of whole numbers, modulo 2^32 and then clamped to the output's type."""
    dtype = output.DataType.dtype
    word, limits = _word(dtype), np.iinfo(dtype)
    factor = base.astype(np.int64).astype(np.uint32)
    left = np.maximum(exponent, 0).astype(np.uint32)
    product = np.ones_like(factor)
    while left.any():
        product *= np.where(left & np.uint32(1), factor, np.uint32(1))
        factor, left = factor * factor, left >> np.uint32(1)
    power = product.view(word)
    negative = exponent < 0
    if negative.any():
        reciprocal = np.where(exponent % 2 == 1, base, 1.0) * (np.abs(base) == 1)
        power[negative] = reciprocal[negative].astype(np.int64).astype(word)
    clamped: Array = np.clip(power, limits.min, limits.max).astype(dtype)
    return clamped


def _whole_power_interval(bases: Ends, exponents: Ends, output: TensorDesc) -> Ends:
    of_ends = [_whole_power(base, exponent, output) for base in bases for exponent in exponents]
    lowest, highest = np.minimum.reduce(of_ends), np.maximum.reduce(of_ends)
    limits = np.iinfo(output.DataType.dtype)
    with np.errstate(all="ignore"):
        powers = [_power(base, exponent) for base in bases for exponent in exponents]
        outside = np.maximum.reduce(powers) > limits.max
        outside |= np.minimum.reduce(powers) < limits.min
    if 8 * output.DataType.dtype.itemsize == _WORD:
        # These wrap around, so the power of an inexact number may be any.
        rounded = (bases[0] != bases[1]) | (exponents[0] != exponents[1])
        outside = rounded & (outside | (bases[0] < 0))
    lowest[outside], highest[outside] = limits.min, limits.max
    return lowest, highest
