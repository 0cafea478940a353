"""What FLOAT32 attributes outside an integer type's range may become: -1.5 in UINT8, 255 or 0.

`dmlconf.reference.numbers.attributes` converts as x86-64 does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dmlconf.reference.numbers.attributes import converted, low_bits
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "possible_conversions",
]


def possible_conversions(value: float, data_type: str, dtype: np.dtype[Any]) -> list[Array]:
    """Return the values that an attribute may become in a tensor's type, each without dimensions.

    The first value is the result of `converted`. There are other values only if a truncated FLOAT32
    attribute does not fit an integer type: -1.5 in UINT8 is 255 on x86-64, and 0 on ARM64.

    Args:
        data_type: the attribute's own type: FLOAT32, or else that of the tensor.
        dtype: the tensor's type.
    """
    first = converted(value, data_type, dtype)
    number = single(value)
    if data_type != "FLOAT32" or dtype.kind == "f" or _fits(number, dtype):
        return [first]
    words = [(bits, signed) for bits in (32, 64) for signed in (False, True)]
    wide = [_by_arm64(number, bits, signed) for bits, signed in words if bits >= 8 * dtype.itemsize]
    if dtype.kind == "u" and dtype.itemsize >= 4:
        wide.append(-1)  # AVX-512 converts numbers out of range to unsigned integers of all ones.
    others = (low_bits(number, dtype) for number in wide)
    choices = {int(first): first}
    for other in others:
        choices.setdefault(int(other), other)
    return list(choices.values())


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return math.isfinite(value) and int(limits.min) <= math.trunc(value) <= int(limits.max)


def _by_arm64(value: float, bits: int, signed: bool) -> int:
    """Return the value as ARM64 converts it: truncated, and clamped to integers of `bits` bits.

    NaN becomes 0.
    """
    least = -(1 << bits - 1) if signed else 0
    greatest = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    if not math.isfinite(value):
        return 0 if math.isnan(value) else greatest if value > 0 else least
    return min(max(math.trunc(value), least), greatest)
