"""The infinities and NaN that overflows of MATRIX_MULTIPLY_INTEGER_TO_FLOAT may give.

A dequantized number that overflows makes its product infinite with the sign of the product, or NaN
if the other factor is 0. Measured on DirectML 1.13.1 and 1.15.4.

Derived in docs/bounds.md, Products of dequantized numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlconf.permitted.numbers.rounding import ANY_RESULT, STEP
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT32, LEAST_NORMAL_FLOAT32

__all__ = ["Factor", "nan_of_overflows", "overflowing_sides"]


@dataclass(frozen=True, slots=True)
class Factor:
    """One of the two matrices, whose integers are multiplied by a scale.

    Attributes:
        sizes: the absolute values of the integers, FLOAT64.
        scale: the absolute value of the scale, FLOAT64.
        negative, positive: the sizes of the scaled numbers that may have this sign, before they are
            scaled; 0 for other numbers.
        overflow: which numbers overflow the output's type before or after they are scaled.
        lost: which numbers are 0 or may become 0 when they are scaled.
        undefined: which numbers are 0 with an infinite scale.
    """

    sizes: Array
    scale: Array
    negative: Array
    positive: Array
    overflow: Array
    lost: Array
    undefined: Array

    @classmethod
    def of(cls, numbers: Array, sizes: Array, scale: Array, dtype: np.dtype[Any]) -> Factor:
        """Return the factor of integers with their scale.

        Args:
            numbers: the integers less their zero point, FLOAT64.
            sizes: the sum of both sizes for integers of 32 bits, which FLOAT32 rounds before it
                subtracts; else the absolute values of `numbers`.
            dtype: the output's type.
        """
        info = np.finfo(dtype)
        scaled, signs = sizes * np.abs(scale), np.sign(scale)
        doubtful = np.abs(numbers) <= sizes * STEP
        negative, positive = (
            np.where((side * numbers * signs > 0) | doubtful, sizes, 0.0) for side in (-1, 1)
        )
        overflow = (scaled > float(info.max)) | (sizes > float(info.max))
        lost = (sizes == 0) | (scaled < float(info.tiny))
        undefined = (sizes == 0) & np.isinf(scale)
        return cls(sizes, np.abs(scale), negative, positive, overflow, lost, undefined)


def overflowing_sides(a: Factor, b: Factor, bias: Array) -> Interval:
    """Return the field `by_sign` of the sums of products and of the bias.

    A product that overflows counts as ANY_RESULT, so that only the bias and the right result are
    infinite terms.
    """
    factor = np.maximum(a.scale * b.scale, np.maximum(a.scale, b.scale))

    def side(*pairs: tuple[Array, Array]) -> Array:
        sums, infinite = np.zeros(()), np.zeros(())
        for one, other in pairs:
            sums = sums + one @ other
            infinite = infinite + np.where(a.overflow, one, 0) @ other
            infinite = infinite + one @ np.where(b.overflow, other, 0)
        sums = np.where(sums > 0, np.fmin(sums * factor, ANY_RESULT), 0.0)
        return np.where(infinite > 0, ANY_RESULT, sums)

    negative = side((a.negative, b.positive), (a.positive, b.negative))
    positive = side((a.positive, b.positive), (a.negative, b.negative))
    return np.minimum(bias, 0) - negative, np.maximum(bias, 0) + positive


def nan_of_overflows(a: Factor, b: Factor) -> Array:
    """Return which sums may be NaN, since infinity is multiplied by 0.

    The infinity is a dequantized number, or the sum of products times one of the scales.
    """

    def any_pair(one: Array, other: Array) -> Array:
        found: Array = one.astype(np.float64) @ other.astype(np.float64) > 0
        return found

    nan = any_pair(a.overflow, b.lost) | any_pair(a.lost, b.overflow)
    nan |= a.undefined.any(-1, keepdims=True) | b.undefined.any(-2, keepdims=True)
    sums = a.sizes @ b.sizes
    for one, other in ((a.scale, b.scale), (b.scale, a.scale)):
        nan = nan | ((sums * one > LARGEST_FLOAT32) & (other < LEAST_NORMAL_FLOAT32))
    return nan
