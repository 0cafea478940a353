"""Sums of products of bytes minus their zero points are exact, however long they are.

FLOAT32 holds a sum of at most 114 such products exactly.

The tested code is in `dmlconf/reference/quantization/exact_sums.py`.
"""

import numpy as np
import pytest

from dmlconf.reference.quantization.exact_sums import exact_convolution, exact_product
from dmlconf.reference.windows.convolution import FilterGeometry, forward

LARGEST = 255.0 + 128.0
"""The largest difference of a byte and its zero point."""

EXTREMES = [LARGEST, -LARGEST, LARGEST - 1]


@pytest.mark.parametrize("length", [1, 113, 114, 115, 229, 5003])
def test_product_of_largest_numbers_is_exact(length: int) -> None:
    random = np.random.default_rng(length)
    a = random.choice(EXTREMES, (2, 5, length), p=[0.9, 0.05, 0.05])
    b = random.choice(EXTREMES, (2, length, 3), p=[0.9, 0.05, 0.05])
    assert np.array_equal(exact_product(a, b), a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize(("channels", "kernel"), [(3, 3), (13, 3), (40, 2), (150, 1), (2, 11)])
def test_convolution_of_largest_numbers_is_exact(channels: int, kernel: int) -> None:
    random = np.random.default_rng(channels)
    values = random.choice(EXTREMES, (2, 2 * channels, kernel + 2, kernel), p=[0.9, 0.05, 0.05])
    filter_ = random.choice(EXTREMES, (4, channels, kernel, kernel), p=[0.9, 0.05, 0.05])
    window = FilterGeometry.of(2, (1, 1), (1, 1), (0, 0), 2)
    sizes = (2, 4, 3, 1)
    expected = forward(values, filter_, sizes, window)
    assert np.array_equal(exact_convolution(values, filter_, sizes, window), expected)
