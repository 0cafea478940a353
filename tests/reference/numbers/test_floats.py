"""Elements become FLOAT64 and attributes are rounded to FLOAT32, both without a warning.

The tested code is in `dmlconf/reference/numbers/floats.py`.
"""

from __future__ import annotations

import math

import numpy as np

from dmlconf.reference.numbers.floats import single, wide


def test_an_attribute_is_rounded_to_float32() -> None:
    assert single(0.1) == float(np.float32(0.1)) != 0.1


def test_an_attribute_beyond_float32_is_infinite() -> None:
    assert (single(1e39), single(-1e39)) == (math.inf, -math.inf)


def test_a_signalling_nan_becomes_a_nan() -> None:
    (actual,) = wide(np.array([0x7F80_0001], np.uint32).view(np.float32))
    assert actual.dtype == np.float64
    assert math.isnan(actual)
