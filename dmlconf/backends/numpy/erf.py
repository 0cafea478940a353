"""The error function of arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["erf"]

_PER_UNIT: Final = 128
_END: Final = 6
"""From here on erf is 1 to the last bit of FLOAT64."""


@cache
def _table() -> Array:
    return np.array([math.erf(i / _PER_UNIT) for i in range(_END * _PER_UNIT + 1)])


def erf(values: Array) -> Array:
    """Return erf of FLOAT64 numbers, to 2^-51; NaN stays NaN.

    The value at the nearest of a table's places, and from there the Taylor series, whose
    derivatives are Hermite polynomials.
    """
    with np.errstate(all="ignore"):
        x = np.minimum(np.abs(values), _END)
        index = np.nan_to_num(np.rint(x * _PER_UNIT)).astype(np.intp)
        near = index / _PER_UNIT
        d = x - near
        square = near * near
        series = 1 - d * (
            near
            - d * ((2 * square - 1) / 3 - d * near * ((2 * square - 3) / 6))
            + d**3 * ((4 * square - 12) * square + 3) / -30
            + d**4 * near * ((4 * square - 20) * square + 15) / 90
        )
        found = _table()[index] + d * series * np.exp(-square) * (2 / math.sqrt(math.pi))
    signed: Array = np.copysign(found, values)
    return signed
