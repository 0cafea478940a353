"""Permitted errors of powers, and of ATAN_YX, the arc tangent of a quotient.

Kernels compute x^y as exp2(y * log2(x)), so the relative error of x^100 is about 100 ln(2) = 69
times the error of log2(x). Powers of integers are products, modulo 2^32.

Source: Direct3D 11.3 functional specification, 22.10 (exp, log).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.element_wise.arithmetic import LARGEST_DIVISOR
from dmlconf.permitted.element_wise.scale_bias import scaled_interval
from dmlconf.permitted.element_wise.trigonometry import ARCTANGENT
from dmlconf.permitted.numbers.accuracy import EXP2_ERROR, LOG2_ERROR
from dmlconf.permitted.numbers.rounding import STEP, anything_where, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.element_wise.power import (
    are_integers,
    exponent_of,
    finite_if_whole,
    operand,
    real_power,
    whole_numbers,
    whole_power,
)
from dmlconf.reference.element_wise.scale_bias import ScaleBias, scaled
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16, LEAST_NORMAL_FLOAT32

__all__ = [
    "element_wise_atan_yx_candidates",
    "element_wise_constant_pow_interval",
    "element_wise_pow_interval",
    "is_even",
]

_BEYOND_INT32: Final = 2.0**31
"""Kernels may treat even exponents of this size or more as odd.

Measured on DirectML 1.8.0 and 1.15.4: (-1)^16777216 is 1, and (-1)^2147483648 is -1.
"""

_WORD: Final = 32
"""The number of bits of the integers that kernels compute with."""


def element_wise_pow_interval(
    InputTensor: Array, ExponentTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Interval:
    """Return the interval of POW.

    With a floating-point base or exponent, the interval has the errors of exp2 and log2. A FLOAT32
    base to an exponent of 8 or 16 bits may also be infinite if the power is beyond 65504.

    For a power of integers outside the range of an output of 8 or 16 bits, any value is right. In
    32 bits, a power wraps around: if scaling may round an operand, any value is right for a power
    outside the range, and for every power of a negative base. A power of integers may also be 0 if
    scaling may make the exponent -infinity.

    Measured: (-1)^y is 1 for y = 3 * -1e38, and 0 for y = 4 * -1e38, which overflows.
    """
    tensors = InputTensor, ExponentTensor
    real = not are_integers(*tensors)
    bases, exponents = (_operand_interval(tensor, ScaleBias, real=real) for tensor in tensors)
    least, greatest = (finite_if_whole(end, ExponentTensor) for end in exponents)
    exponents = least, greatest
    if not real:
        infinite = scaled_interval(ExponentTensor, ScaleBias)[0] == -np.inf
        lowest, highest = _whole_power_interval(bases, exponents, OutputTensor)
        with_0 = np.minimum(lowest, 0), np.maximum(highest, 0)
        return np.where(infinite, with_0[0], lowest), np.where(infinite, with_0[1], highest)
    base, exponent = (operand(tensor, ScaleBias, real=real) for tensor in tensors)
    exact = base, finite_if_whole(exponent, ExponentTensor)
    lowest, highest = _power_interval(exact, bases, exponents, OutputTensor)
    if InputTensor.dtype == np.float32 and ExponentTensor.dtype.itemsize < 4:
        lowest[lowest < -LARGEST_FLOAT16] = -np.inf
        highest[highest > LARGEST_FLOAT16] = np.inf
    return lowest, highest


def element_wise_constant_pow_interval(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Exponent: float
) -> Interval:
    """Return the interval of CONSTANT_POW, computed as that of POW with floating-point operands."""
    exponent = exponent_of(Exponent)
    bases = scaled_interval(InputTensor, ScaleBias)
    exact = scaled(InputTensor, ScaleBias), exponent
    return _power_interval(exact, bases, (exponent, exponent), OutputTensor)


def element_wise_atan_yx_candidates(
    ATensor: Array, BTensor: Array, OutputTensor: TensorDesc
) -> Sequence[Interval]:
    """Return the candidates of ATAN_YX, with ATensor as y and BTensor as x.

    Angles have the error of a polynomial. At the origin, any angle or NaN is right. Kernels may
    compute y / x as y * (1 / x), or x / y as x * (1 / y); a subnormal reciprocal may be flushed to
    0, which gives further candidates. Any value is right if x or y is NaN, if both are subnormal,
    and if one is subnormal and the other 0.
    """
    y, x = wide(ATensor), wide(BTensor)
    dtype = OutputTensor.DataType.dtype
    exact = np.arctan2(y, x)
    origin = (y == 0) & (x == 0)
    tiny = np.finfo(np.float32).tiny
    open_ = np.isnan(exact) | (~origin & (np.abs(y) < tiny) & (np.abs(x) < tiny))
    finite = np.isfinite(y) & np.isfinite(x)

    def around(angles: Array) -> Interval:
        least, _ = rounded_interval(np.where(origin, -np.pi, angles), ARCTANGENT, dtype)
        _, greatest = rounded_interval(np.where(origin, np.pi, angles), ARCTANGENT, dtype)
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


def _operand_interval(tensor: Array, scale_bias: ScaleBias | None, *, real: bool) -> Interval:
    low, high = scaled_interval(tensor, scale_bias)
    if are_integers(tensor):
        low, high = (whole_numbers(end, tensor.dtype, real=real) for end in (low, high))
    return low, high


def _power_interval(
    exact: tuple[Array, ...], bases: Interval, exponents: Interval, output: TensorDesc
) -> Interval:
    base, exponent = exact
    power = real_power(base, exponent)
    with np.errstate(all="ignore"):
        corners = list(_corners(bases, exponents, np.abs(np.fmod(exponent, 2)) == 1))
        around_zero = (bases[0] <= 0) & (bases[1] >= 0) & (bases[0] < bases[1])
        if around_zero.any():
            pole = np.where(around_zero & (exponent < 0), np.inf, 0.0)
            even = is_even(exponent) & (exponents[0] == exponents[1])
            below = np.where(even, 0.0, -pole)
            corners += [np.where(around_zero, end, power) for end in (below, 0 * power, pole)]
        subnormal = (base != 0) & (np.abs(base) < LEAST_NORMAL_FLOAT32)
        if subnormal.any():
            # A subnormal base may be flushed to 0. Measured: its log2 may also be near -127.
            least_normal = real_power(np.copysign(LEAST_NORMAL_FLOAT32, base), exponent)
            corners += [np.where(subnormal, end, power) for end in (0 * power, least_normal)]
        low, high = np.fmin.reduce([*corners, power]), np.fmax.reduce([*corners, power])
        # Kernels treat the base 0 apart: its power has no error.
        zero = (base == 0) & (bases[0] == bases[1])
        low, high = (np.where(zero | np.isnan(power), power, end) for end in (low, high))
    # Both signs are right for exponents of `_BEYOND_INT32` or more, and for odd exponents that
    # FLOAT32 may round to even ones: measured with 979433053.
    with np.errstate(invalid="ignore", over="ignore"):  # For infinite and large exponents.
        odd = np.abs(np.fmod(exponent, 2)) == 1
        unheld = odd & (exponent.astype(np.float32) != exponent)
    signless = (base < 0) & (unheld | (np.abs(exponent) >= _BEYOND_INT32)) & np.isfinite(exponent)
    size = np.fmax(np.abs(low), np.abs(high))
    low, high = np.where(signless, -size, low), np.where(signless, size, high)
    # The power of a negative base is a number only if the scaled exponent is whole. Measured: the
    # exponent 5 * 0.1 - 0.5 is 0 on DirectML 1.9.1, and 7e-9 if it is rounded once.
    in_doubt = (bases[0] < 0) & (exponents[0] < exponents[1])
    in_doubt &= np.ceil(exponents[0]) <= exponents[1]
    # Rounding may decide whether a base is negative. Measured: 3 * 1e38 - 3e38 is 0 on DirectML
    # 1.15.4, and negative with one rounding. Infinity to a power that may be 0 may be NaN.
    in_doubt |= np.isnan(power) & (bases[0] < 0) & (bases[1] >= 0)
    near_zero = np.maximum(exponents[0], -exponents[1]) < LEAST_NORMAL_FLOAT32
    in_doubt |= near_zero & (exponents[0] < exponents[1]) & ~np.isfinite(bases).all(0)
    dtype = output.DataType.dtype
    if dtype.kind in "iu":
        low, high = np.where(in_doubt, -np.inf, low), np.where(in_doubt, np.inf, high)
        return cast(low, output), cast(high, output)
    ends = rounded_interval(low, 0.0, dtype)[0], rounded_interval(high, 0.0, dtype)[1]
    return anything_where(in_doubt, ends)


def is_even(exponent: Array) -> Array:
    """Return which exponents every kernel treats as even: their powers are not negative."""
    even: Array = (np.fmod(exponent, 2) == 0) & (np.abs(exponent) < _BEYOND_INT32)
    return even


def _corners(bases: Interval, exponents: Interval, odd: Array) -> Iterator[Array]:
    """Yield the powers of all ends of two intervals, minus and plus the error of FLOAT32."""
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


def _whole_power_interval(bases: Interval, exponents: Interval, output: TensorDesc) -> Interval:
    of_ends = [whole_power(base, exponent, output) for base in bases for exponent in exponents]
    lowest, highest = np.minimum.reduce(of_ends), np.maximum.reduce(of_ends)
    limits = np.iinfo(output.DataType.dtype)
    with np.errstate(all="ignore"):
        powers = [real_power(base, exponent) for base in bases for exponent in exponents]
        outside = np.maximum.reduce(powers) > limits.max
        outside |= np.minimum.reduce(powers) < limits.min
    if 8 * output.DataType.dtype.itemsize == _WORD:
        # Powers wrap around, so those of an interval's ends need not enclose those between.
        rounded = (bases[0] != bases[1]) | (exponents[0] != exponents[1])
        outside = rounded & (outside | (bases[0] < 0))
    lowest[outside], highest[outside] = limits.min, limits.max
    return lowest, highest
