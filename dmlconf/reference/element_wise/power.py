"""Powers, and the inverse tangent of two tensors, ATAN_YX.

DirectML multiplies repeatedly if base and exponent are integers, so 0 to the power 0 is 1. Other
powers, here called real, are `exp2(y * log2(|x|))`, negated for a negative base and an odd
exponent. A real power of 0 is 0 for any exponent.

Source: the operators' pages; special numbers, overflow of integers and the truncation of scaled
integers were measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.element_wise.conversion import cast
from dmlconf.reference.element_wise.scale_bias import ScaleBias, scaled
from dmlconf.reference.numbers.blocks import in_blocks
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "are_integers",
    "element_wise_atan_yx",
    "element_wise_constant_pow",
    "element_wise_pow",
    "exponent_of",
    "finite_if_whole",
    "operand",
    "real_power",
    "whole_numbers",
    "whole_power",
]


def element_wise_pow(
    InputTensor: Array, ExponentTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None
) -> Array:
    """InputTensor {D0, ...}, ExponentTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16,
    INT32 to INT8, UINT32 to UINT8

    Return `x ^ y`, by `whole_power` if both tensors hold integers, else by `real_power`. ScaleBias
    applies to both tensors; `whole_numbers` truncates scaled integers.

    Source: the page of DML_ELEMENT_WISE_POW_OPERATOR_DESC; that exponents are scaled was measured.
    """
    whole = are_integers(InputTensor, ExponentTensor)
    function = whole_power if whole else _real_power

    def computed(*tensors: Array) -> Array:
        base, exponent = (operand(tensor, ScaleBias, real=not whole) for tensor in tensors)
        return function(base, finite_if_whole(exponent, tensors[1]), OutputTensor)

    return in_blocks(computed, InputTensor, ExponentTensor, dtype=OutputTensor.DataType.dtype)


def element_wise_constant_pow(
    InputTensor: Array, OutputTensor: TensorDesc, ScaleBias: ScaleBias | None, Exponent: float
) -> Array:
    """InputTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return `x ^ Exponent` as `real_power` does; ScaleBias applies to the input alone.

    Source: the page of DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC.
    """
    exponent = exponent_of(Exponent)

    def computed(tensor: Array) -> Array:
        return _real_power(scaled(tensor, ScaleBias), exponent, OutputTensor)

    return in_blocks(computed, InputTensor, dtype=OutputTensor.DataType.dtype)


def element_wise_atan_yx(ATensor: Array, BTensor: Array, OutputTensor: TensorDesc) -> Array:
    """ATensor {D0, ...}, BTensor {D0, ...} -> OutputTensor {D0, ...}; FLOAT32, FLOAT16

    Return the angle in radians, from -pi to pi, of the point with y in ATensor and x in BTensor. At
    the origin, where the page leaves it undefined, it is that of `atan2` in C.

    Source: the page of DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC.
    """
    return cast(np.arctan2(wide(ATensor), wide(BTensor)), OutputTensor)


def are_integers(*tensors: Array) -> bool:
    """Return whether all tensors hold integers."""
    return all(tensor.dtype.kind in "iu" for tensor in tensors)


def exponent_of(exponent: float) -> Array:
    """Return the attribute Exponent, which DirectML takes as FLOAT32, as a FLOAT64 array."""
    return np.array(exponent, np.float32).astype(np.float64)


def operand(tensor: Array, scale_bias: ScaleBias | None, *, real: bool) -> Array:
    """Return the scaled elements of a base or an exponent, FLOAT64; integers by `whole_numbers`.

    `real` says whether the power is real: base or exponent is a floating-point tensor.
    """
    values = scaled(tensor, scale_bias)
    return whole_numbers(values, tensor.dtype, real=real) if are_integers(tensor) else values


def finite_if_whole(exponent: Array, tensor: Array) -> Array:
    """Return the exponents; infinite ones of an integer tensor become the largest finite numbers.

    Measured on DirectML 1.12.1: with a Scale of infinity, the powers of negative infinity are
    infinite or 0, as with large whole exponents, and not NaN.
    """
    return np.nan_to_num(exponent) if are_integers(tensor) else exponent


def _word(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the 32-bit type in which kernels compute powers of an integer type."""
    return np.dtype(np.int32 if dtype.kind == "i" else np.uint32)


def whole_numbers(values: Array, dtype: np.dtype[Any], *, real: bool) -> Array:
    """Return numbers without their fraction, clamped to 32 bits, and 0 for NaN; FLOAT64.

    `dtype` is the integer type of their tensor. Signed operands of a real power are not clamped,
    and infinity stays infinity. Measured on DirectML 1.8.2, 1.13.1 and 1.15.4: with Scale 3 and
    Bias 3, 2147483647 to an exponent that is scaled to 0.894 is 587,884,224. A clamped base would
    give about 220,163,000.
    """
    whole: Array = np.trunc(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf))
    if real and dtype.kind == "i":
        return whole
    limits = np.iinfo(_word(dtype))
    return np.clip(whole, limits.min, limits.max)


def _real_power(base: Array, exponent: Array, output: TensorDesc) -> Array:
    return cast(real_power(base, exponent), output)


def real_power(base: Array, exponent: Array) -> Array:
    """Return the power of FLOAT64 numbers, with DirectML's results for special numbers.

    The base 0 gives 0 for any exponent. DirectML's formula gives NaN where `pow` of C gives 1: for
    `(±1)^(±inf)`, `1^NaN`, `(±inf)^0` and `NaN^0`. A negative base gives NaN unless the exponent is
    a finite whole number.
    """
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


def whole_power(base: Array, exponent: Array, output: TensorDesc) -> Array:
    """Return the power of whole numbers, modulo 2^32 and then clamped to the output's type.

    Modulo 2^32 the power is an INT32 number if the output is signed, else a UINT32 number. A
    negative exponent gives 1 or -1 for the bases 1 and -1, else 0.
    """
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
