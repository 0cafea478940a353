"""The error function of arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["erf"]

_PER_UNIT: Final = 256
_END: Final = 6
"""From here on erf is 1 to the last bit of FLOAT64."""


@cache
def _coefficients() -> tuple[Array, ...]:
    """Return the coefficients of the Taylor series at every place, the highest power first.

    The derivatives are Hermite polynomials times the first of them.
    """
    n = np.arange(_END * _PER_UNIT + 1) / _PER_UNIT
    values = np.array([math.erf(place) for place in n])
    slope = np.exp(-n * n) * (2 / math.sqrt(math.pi))
    polynomials = (
        ((4 * n**2 - 12) * n**2 + 3) / 30,
        (3 - 2 * n**2) * n / 6,
        (2 * n**2 - 1) / 3,
        -n,
        np.ones_like(n),
    )
    return (*(slope * polynomial for polynomial in polynomials), values)


def erf(values: Array) -> Array:
    """Return erf of FLOAT64 numbers, to 2^-51; NaN stays NaN.

    The Taylor series at the nearest of a table's places.
    """
    with np.errstate(all="ignore"):
        distance = np.minimum(np.abs(values), _END)
        nearest = (np.fmax(distance, 0.0) * _PER_UNIT + 0.5).astype(np.intp)
        distance -= nearest * (1 / _PER_UNIT)
        highest, *others = _coefficients()
        found = highest.take(nearest)
        for coefficient in others:
            found *= distance
            found += coefficient.take(nearest)
    signed: Array = np.copysign(found, values)
    return signed
