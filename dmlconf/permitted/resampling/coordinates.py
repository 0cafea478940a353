"""The errors of coordinates that are computed in FLOAT32.

Source: Direct3D 11.3 functional specification, 3.1: each operation rounds up or down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP
from dmlconf.reference.resampling.interpolation import Coordinates
from dmlconf.tensors.datatypes import Array

__all__ = ["NO_COORDINATE", "PRECISION", "UncertainCoordinates", "quanta", "uncertain"]

PRECISION: Final = 24
"""The bits of a FLOAT32 significand."""

_ROUNDINGS: Final = 4
"""FLOAT32 operations that a coordinate needs: a reciprocal, a product and two sums."""


NO_COORDINATE: Final = 2.0**60
"""A coordinate with an error above this may be anywhere."""

_FARTHEST: Final = 2.0**60
"""A coordinate beyond all elements; four times this number still fits into INT64."""


@dataclass(frozen=True, slots=True)
class UncertainCoordinates(Coordinates):
    """Coordinates with their errors.

    Attributes:
        errors: how far FLOAT32 arithmetic may be off at each coordinate.
    """

    errors: Array = field(kw_only=True)


def uncertain(at: Coordinates) -> UncertainCoordinates:
    """Return coordinates with their errors.

    The error is 0 if the scale is a power of two and FLOAT32 holds all intermediates exactly.

    Coordinates are limited to 2^60 in size, and errors to 2^61. The error of a limited coordinate
    is limited to 2^59 if it was less than half of the coordinate. With an infinite or NaN offset,
    the error is 2^61, so every element may be read.
    """
    scale, shift, offset = at.scale, at.output_offset, at.input_offset
    indices = np.arange(len(at.values), dtype=np.float64)
    errors: Array = ((indices + abs(shift)) / scale + abs(offset) + 0.5) * (_ROUNDINGS * STEP)
    if math.frexp(scale)[0] == 0.5:
        # All intermediates are multiples of `before` until the division by the scale, and of
        # `behind` after it. The 0.5 is for rounding to nearest.
        before = float(np.min(quanta(np.array([1.0, shift]))))
        behind = float(np.min([before / scale, *quanta(np.array([shift / scale, offset, 0.5]))]))
        sizes = indices + abs(shift)
        exact = sizes <= before * 2.0**PRECISION
        exact &= sizes / scale + abs(offset) + 0.5 <= behind * 2.0**PRECISION
        errors[exact] = 0
    size = np.abs(at.values)
    most = np.where((size > _FARTHEST) & (errors < size / 2), _FARTHEST / 2, 2 * _FARTHEST)
    values = np.clip(np.where(np.isnan(at.values), 0.0, at.values), -_FARTHEST, _FARTHEST)
    errors = np.fmin(errors, most)
    return UncertainCoordinates(values, scale, offset, shift, errors=errors)


def quanta(values: Array) -> Array:
    """Return the greatest power of two that divides each number.

    The result is infinity for zero, and 0 for infinity and NaN.
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    fraction, exponent = np.frexp(finite)
    whole = np.abs(fraction * 2.0**53).astype(np.int64)
    result = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(np.isfinite(values), np.where(finite == 0, np.inf, result), 0.0)
