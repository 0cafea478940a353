"""How kernels store numbers in FLOAT16: rounded toward zero or to the nearest number.

Kernels compute in FLOAT32, so each number is rounded to FLOAT32 first: 99.9999966 becomes 100. If
it were truncated to FLOAT16 at once, it would become 99.9375.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import truncated
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16, LARGEST_FLOAT32

__all__ = [
    "STORES",
    "overflow_results",
    "to_nearest",
    "toward_zero",
]

_FLOAT16: Final = np.dtype(np.float16)
_LARGEST: Final = np.float32(LARGEST_FLOAT32)


@np.errstate(over="ignore")
def to_nearest(values: Array) -> Array:
    """Return the nearest FLOAT16 numbers, as FLOAT64; 65520 and larger sizes become infinite."""
    rounded: Array = _in_float32(values).astype(np.float16).astype(np.float64)
    return rounded


def toward_zero(values: Array) -> Array:
    """Return FLOAT64 values truncated to FLOAT16, as FLOAT64; finite ones stay finite."""
    return truncated(_in_float32(values), _FLOAT16).astype(np.float64)


@np.errstate(over="ignore")
def _in_float32(values: Array) -> Array:
    """Return the nearest FLOAT32 numbers; finite ones stay finite."""
    rounded = values.astype(np.float32)
    beyond = np.isinf(rounded) & np.isfinite(values)
    return np.where(beyond, np.copysign(_LARGEST, rounded), rounded) if beyond.any() else rounded


STORES: Final[tuple[Store, ...]] = (toward_zero, to_nearest)
"""Both ways to store in FLOAT16: DirectML truncates, as measured, and Direct3D permits both."""


def overflow_results(values: Array) -> list[Array]:
    """Return the values twice: with 65504 and with infinity in place of finite sizes above 65504.

    Signs stay. The list is empty if there are no such sizes.
    """
    beyond = np.isfinite(values) & (np.abs(values) > LARGEST_FLOAT16)
    if not beyond.any():
        return []
    return [
        np.where(beyond, np.copysign(held, values), values) for held in (LARGEST_FLOAT16, np.inf)
    ]
