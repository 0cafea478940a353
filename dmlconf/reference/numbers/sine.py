"""Sine and cosine of arrays, from t, the tangent of half the angle.

With AVX-512, NumPy computes eight FLOAT64 tangents at once, but sines and cosines one after
another. Without AVX-512, this module is slower than NumPy's sines and cosines.

Source: Abramowitz and Stegun, 4.3.24 and 4.3.25, the functions of twice an angle.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["cosine", "sine"]

_NEAR_ZERO: Final = 2.0**-12
"""A cosine of smaller magnitude loses more than 12 bits, so NumPy computes it."""


def sine(values: Array) -> Array:
    """Return the sine of FLOAT64 numbers, `2 t / (1 + t^2)`, with a relative error of up to 2^-50.

    The sine of an infinity or NaN is NaN.
    """
    with np.errstate(all="ignore"):
        half = values * 0.5
        np.tan(half, out=half)
        divisor = half * half
        divisor += 1
        half /= divisor
        half *= 2
    return half


def cosine(values: Array) -> Array:
    """Return the cosine of FLOAT64 numbers, `(1 - t^2) / (1 + t^2)`; relative error up to 2^-40.

    The cosine of an infinity or NaN is NaN.
    """
    with np.errstate(all="ignore"):
        square = values * 0.5
        np.tan(square, out=square)
        square *= square
        result = 1 - square
        square += 1
        result /= square
        near_zero = np.abs(result) < _NEAR_ZERO
        if near_zero.any():
            result[near_zero] = np.cos(values[near_zero])
    return result
