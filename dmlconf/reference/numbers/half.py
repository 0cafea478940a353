"""Convert FLOAT32 to FLOAT16 by integer arithmetic on bits, which is faster than NumPy's `astype`.

NumPy still converts arrays with NaN, or with a number that becomes infinite.

Source: IEEE 754-2019, 3.4 (the encodings) and 4.3.1 (to nearest, halves to even).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = [
    "Store",
    "to_float16",
]

Store = Callable[[Array], Array]
"""Rounds FLOAT64 values to the FLOAT16 numbers that a kernel stores; returns FLOAT64."""

_OVERFLOW: Final = np.float32(65520)
"""The least number that is rounded to infinity."""

_LEAST_NORMAL: Final = np.float32(2.0**-14)

_HALF: Final = np.float32(0.5)
"""Adding 0.5 in FLOAT32 rounds to a multiple of 2^-24, the least subnormal FLOAT16 number."""

_BITS_OF_HALF: Final = 126 << 23

_OMITTED: Final = 13
"""Bits that the fraction of FLOAT16 lacks: 23 - 10."""

_BIAS_DIFFERENCE: Final = 127 - 15
"""The exponent bias of FLOAT32 minus that of FLOAT16."""


def to_float16(values: Array) -> Array:
    """Return FLOAT32 numbers rounded to the nearest FLOAT16 ones, halves to even."""
    magnitude = np.abs(values)
    if not np.maximum.reduce(magnitude, axis=None) < _OVERFLOW:
        return values.astype(np.float16)
    has_subnormal = np.minimum.reduce(magnitude, axis=None) < _LEAST_NORMAL
    normal = np.maximum(magnitude, _LEAST_NORMAL) if has_subnormal else magnitude
    bits = normal.view(np.uint32)
    # Adding 0x0FFF plus the last kept bit carries into that bit where the number is rounded up.
    rounded = bits >> _OMITTED
    rounded &= 1
    rounded += bits
    rounded -= (_BIAS_DIFFERENCE << 23) - (1 << _OMITTED - 1) + 1
    rounded >>= _OMITTED
    if has_subnormal:
        # For each element, `rounded` or `subnormal` has the result. The other one has the least
        # normal number, whose bits are `1 << 10`.
        subnormal = (np.minimum(magnitude, _LEAST_NORMAL) + _HALF).view(np.uint32)
        rounded += subnormal
        rounded -= _BITS_OF_HALF + (1 << 10)
    half = rounded.astype(np.uint16)
    half |= np.signbit(values).astype(np.uint16) << 15
    return half.view(np.float16)
