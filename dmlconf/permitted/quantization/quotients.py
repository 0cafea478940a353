"""Right results of `round(x / scale) + zero point`, which quantization computes in FLOAT32.

If x / scale is 3.4999999, FLOAT32 may round it to 3.5, and the result is 3 or 4.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import STEP, rounded_interval
from dmlconf.precision.allowance import Interval
from dmlconf.reference.quantization.quotients import quantized
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.float_limits import LEAST_NORMAL_FLOAT32

__all__ = [
    "exact_quotient",
    "is_power_of_two",
    "quantized_candidates",
]


def quantized_candidates(
    quotient: tuple[Array, Array],
    zero_points: tuple[Array | None, Array | None],
    data_type: DataType,
    undefined: Array,
    divisor: Array | None = None,
    overflow: Array | None = None,
) -> list[Interval]:
    """Return the candidates of `quantized`: one interval, or three if a defined quotient is NaN.

    There are one or three more if a quotient may be infinite: with a subnormal divisor, or where
    `overflow` says so.

    Measured: for NaN, DirectML gives the least number, 0 or the zero point, depending on the
    operator. With an output scale of 1.4e-45, DirectML 1.15.4 gives 127 for each positive sum.

    Args:
        quotient: the exact quotient, FLOAT64, and the greatest error of a kernel's quotient before
            FLOAT32 rounds it.
        zero_points: the least and the greatest right zero point; None for 0.
        data_type: an integer type of at most 8 bits.
        undefined: the elements for which any value is right.
        divisor: the divisor of the quotients, which may be subnormal; None adds no candidates.
        overflow: which quotients may be infinite for another reason.
    """
    candidates = _candidates(quotient, zero_points, data_type, undefined)
    exact, error = quotient
    infinite = np.zeros(exact.shape, bool)
    if divisor is not None:
        size = np.abs(divisor)
        infinite |= (size > 0) & (size < LEAST_NORMAL_FLOAT32)
    if overflow is not None:
        infinite |= overflow
    if infinite.any():
        with np.errstate(invalid="ignore"):
            overflowed = np.where(infinite, exact * np.inf, exact)
        quotient = overflowed, np.where(infinite, 0.0, error)
        candidates += _candidates(quotient, zero_points, data_type, undefined)
    return candidates


def _candidates(
    quotient: tuple[Array, Array],
    zero_points: tuple[Array | None, Array | None],
    data_type: DataType,
    undefined: Array,
) -> list[Interval]:
    """Return one interval, or three if a defined quotient is NaN (`quantized_candidates`)."""
    exact, error = quotient
    ends = rounded_interval(exact, error, np.dtype(np.float32))
    lowest, highest = (
        quantized(end, zero_point, data_type, nan=0)
        for end, zero_point in zip(ends, zero_points, strict=True)
    )
    everywhere = np.broadcast_to(undefined, exact.shape)
    lowest[everywhere], highest[everywhere] = data_type.minimum, data_type.maximum
    without_value = np.isnan(exact) & ~everywhere
    if not without_value.any():
        return [(lowest, highest)]
    zeros = (0 if zero_point is None else zero_point for zero_point in zero_points)
    choices = (data_type.minimum,) * 2, (0, 0), tuple(zeros)
    return [
        (
            np.where(without_value, least, lowest).astype(lowest.dtype),
            np.where(without_value, greatest, highest).astype(highest.dtype),
        )
        for least, greatest in choices
    ]


_MOST_EXPONENT: Final = 60
"""`frexp` gives exponents below this in size for powers of two from 2^-60 to 2^58. Reciprocals of
such powers of two, and products of two of them, are normal FLOAT32 numbers."""


def is_power_of_two(scale: Array) -> Array:
    """Return which scales are powers of two from 2^-60 to 2^58, or their negatives."""
    fraction, exponent = np.frexp(np.abs(scale))
    usual: Array = (fraction == 0.5) & (np.abs(exponent) < _MOST_EXPONENT)
    return usual


def exact_quotient(values: Array, scale: Array) -> tuple[Array, Array]:
    """Return values / scale, FLOAT64, and the error that the reciprocal of the scale makes.

    Values are rounded to FLOAT32 first. The error is 0 where `is_power_of_two(scale)`.
    """
    with np.errstate(all="ignore"):
        exact = values.astype(np.float32).astype(np.float64) / scale.astype(np.float64)
        return exact, np.where(is_power_of_two(scale), 0.0, np.abs(exact) * STEP)
