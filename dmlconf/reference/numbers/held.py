"""Attributes of descs as numbers of a tensor: a FLOAT32 attribute becomes an integer by a C cast.

C leaves open what a real number becomes that the integer type does not hold, so processors differ.
Measured: DirectML 1.15.4, 1.13.1 and 1.8.0 on x86-64 convert in C, for PADDING and DIAGONAL_MATRIX
alike. The pages do not mention it.

Sources: ISO C 6.3.1.4; Intel 64 manual, CVTTSS2SI and, with AVX-512, VCVTTSS2USI; Arm architecture
reference manual, FCVTZS and FCVTZU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = ["held", "held_choices"]


def held(value: float, data_type: str, dtype: np.dtype[Any]) -> Array:
    """Return an attribute as a number of a tensor, as x86-64 converts it; no dimensions.

    Args:
        value: the attribute.
        data_type: its own type; FLOAT32, or else that of the tensor.
        dtype: the tensor's type.
    """
    if data_type == "FLOAT32":
        value = single(value)
        if dtype.kind != "f":
            return _low_bits(_by_x86_64(value, dtype), dtype)
    with np.errstate(over="ignore"):
        return np.array(value).astype(dtype)


def held_choices(value: float, data_type: str, dtype: np.dtype[Any]) -> list[Array]:
    """Return what an attribute may become: one number, or one for each kind of processor.

    Args:
        value, data_type, dtype: as for `held`, whose number is the first.
    """
    first = held(value, data_type, dtype)
    number = single(value)
    if data_type != "FLOAT32" or dtype.kind == "f" or _fits(number, dtype):
        return [first]
    words = [(bits, signed) for bits in (32, 64) for signed in (False, True)]
    wide = [_by_arm64(number, bits, signed) for bits, signed in words if bits >= 8 * dtype.itemsize]
    if dtype.kind == "u" and dtype.itemsize >= 4:
        wide.append(-1)  # AVX-512 has a conversion to unsigned integers, which gives all ones.
    others = (_low_bits(number, dtype) for number in wide)
    choices = {int(first): first}
    for other in others:
        choices.setdefault(int(other), other)
    return list(choices.values())


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return math.isfinite(value) and int(limits.min) <= math.trunc(value) <= int(limits.max)


def _by_x86_64(value: float, dtype: np.dtype[Any]) -> int:
    """Return the integer to which x86-64 converts a real number before it takes the low bits.

    It has 64 bits for UINT32 and longer types, 32 for the others. What it does not hold, infinity
    and NaN become its lowest number; UINT64 holds the numbers up to 2^64 as well.
    """
    limit = 1 << (63 if dtype.itemsize == 8 or dtype == np.uint32 else 31)
    whole = math.trunc(value) if math.isfinite(value) else -limit
    fits = -limit <= whole < (2 * limit if dtype == np.uint64 else limit)
    return whole if fits else -limit


def _by_arm64(value: float, bits: int, signed: bool) -> int:
    """Return the integer of so many bits that is nearest, which is 0 for NaN."""
    least = -(1 << bits - 1) if signed else 0
    greatest = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    if not math.isfinite(value):
        return 0 if math.isnan(value) else greatest if value > 0 else least
    return min(max(math.trunc(value), least), greatest)


def _low_bits(number: int, dtype: np.dtype[Any]) -> Array:
    bits = number & (1 << 8 * dtype.itemsize) - 1
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)
