"""Sine and cosine of the reference are far more accurate than FLOAT32.

The tested code is in `dmlconf/reference/numbers/sine.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dmlconf.reference.numbers.sine import cosine, sine
from dmlconf.tensors.datatypes import Array

FUNCTIONS = ((sine, math.sin), (cosine, math.cos))

NEAREST = (np.arange(-3000, 3000) * (math.pi / 2)).astype(np.float32)
"""FLOAT32 numbers next to zeros of either function."""

RANDOM = np.random.default_rng(1)

ARGUMENTS = {
    "of all bits": RANDOM.integers(0, 1 << 32, 20000, np.uint32).view(np.float32),
    "up to a turn": RANDOM.uniform(-7, 7, 20000).astype(np.float32),
    "near zeros": np.concatenate(
        [NEAREST, *(np.nextafter(NEAREST, np.float32(end)) for end in (-math.inf, math.inf))]
    ),
}


@pytest.mark.parametrize("values", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize(("function", "standard"), FUNCTIONS)
def test_relative_error_is_at_most_2_to_the_minus_40(
    function: Callable[[Array], Array], standard: Callable[[float], float], values: Array
) -> None:
    finite = values[np.isfinite(values)].astype(np.float64)
    expected = [standard(value) for value in finite]
    np.testing.assert_allclose(function(finite), expected, rtol=2.0**-40, atol=0)


@pytest.mark.parametrize(("function", "standard"), FUNCTIONS)
def test_zeros_are_exact_and_infinities_and_nan_give_nan(
    function: Callable[[Array], Array], standard: Callable[[float], float]
) -> None:
    actual = function(np.array([0.0, -0.0, math.inf, -math.inf, math.nan]))
    assert [str(value) for value in actual[:2]] == [str(standard(zero)) for zero in (0.0, -0.0)]
    assert np.isnan(actual[2:]).all()


def test_cosines_near_0_are_right_in_two_dimensions() -> None:
    values = np.array([[1.0, np.pi / 2, 2.0], [3 * np.pi / 2, 0.5, np.pi / 2]])
    np.testing.assert_allclose(cosine(values), np.cos(values), rtol=2**-40)
