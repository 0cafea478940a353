"""FLOAT32 numbers are rounded to FLOAT16 with the right bits.

The tested code is in `dmlconf/reference/numbers/half.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dmlconf.reference.numbers.half import to_float16
from dmlconf.tensors.datatypes import Array

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
EXACT = np.sort(ALL[np.isfinite(ALL)])
"""All finite FLOAT16 numbers, as FLOAT32."""

HALVES = (EXACT[1:] + EXACT[:-1]) / np.float32(2)
"""The FLOAT32 numbers half-way between two FLOAT16 numbers."""

VALUES = {
    "exact": EXACT,
    "halves": HALVES,
    "above halves": np.nextafter(HALVES, np.float32(math.inf)),
    "below halves": np.nextafter(HALVES, np.float32(-math.inf)),
    "normal": HALVES[np.abs(HALVES) > 2.0**-14],
    "tiny": np.array([1e-45, -1e-45, 2.0**-25, 1.0001 * 2.0**-25, 0.0, -0.0], np.float32),
    # Numbers from 65520 on, half-way between 65504 and 65536, become infinite.
    "beyond": np.array([65519.9, 65520, 1e38, -65520, math.inf, -math.inf, 1], np.float32),
    "random bits": np.random.default_rng(5).integers(0, 1 << 32, 99999, np.uint32).view(np.float32),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_to_float16_gives_the_bits_of_numpys_conversion(values: Array) -> None:
    with np.errstate(all="ignore"):
        numbers = values[~np.isnan(values)]
        expected = np.array([np.float16(number) for number in numbers])
        actual = to_float16(numbers)
    np.testing.assert_array_equal(actual.view(np.uint16), expected.view(np.uint16))


def test_to_float16_keeps_nan() -> None:
    assert np.isnan(to_float16(np.array([math.nan, 1.0], np.float32))).tolist() == [True, False]
