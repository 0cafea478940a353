"""The error function and its complement agree with the C library's.

The tested code is in `dmlconf/reference/numbers/erf.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.reference.numbers.erf import erf, erfc


@given(st.floats(allow_nan=False))
def test_erf_agrees_with_the_c_library(x: float) -> None:
    assert float(erf(np.array([x]))[0]) == pytest.approx(math.erf(x), rel=2**-50, abs=0)


def test_erf_is_off_by_at_most_2_to_the_minus_52() -> None:
    values = np.linspace(-6.5, 6.5, 20001)
    expected = [math.erf(value) for value in values]
    np.testing.assert_allclose(erf(values), expected, rtol=0, atol=2.0**-52)


@given(st.floats(-30, 11 - 2.0**-12))
def test_erfc_below_11_has_a_small_relative_error(x: float) -> None:
    """From 11 on, erfc counts as 0."""
    assert float(erfc(np.array([x]))[0]) == pytest.approx(math.erfc(x), rel=2**-38, abs=0)


def test_erfc_of_large_numbers_is_0_or_2_and_erfc_of_nan_is_nan() -> None:
    values = np.array([-math.inf, -1e12, -20.3, 20.3, 1e12, math.inf, math.nan])
    np.testing.assert_array_equal(erfc(values), [2, 2, 2, 0, 0, 0, math.nan])


def test_erf_keeps_nan_and_the_sign_of_zero() -> None:
    actual = erf(np.array([math.nan, -0.0]))
    assert math.isnan(actual[0])
    assert math.copysign(1, actual[1]) == -1
