"""`half.toward_zero` rounds numbers to FLOAT32, and then to FLOAT16 toward zero.

The tested code is in `dmlconf/permitted/numbers/half.py`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dmlconf.permitted.numbers import half
from tests.truncation import toward_zero


@given(st.lists(st.floats() | st.floats(-70000, 70000), min_size=1, max_size=9))
@example([65519.9, 65520, 1e300, 2.0**-24, 2.0**-25, -1e-300, np.inf, -np.inf, -0.0, np.nan])
def test_toward_zero_equals_the_independent_rounding_of_the_tests(numbers: list[float]) -> None:
    values = np.array(numbers)
    largest = float(np.finfo(np.float32).max)
    clipped = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    in_float32 = clipped.astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(half.toward_zero(values), toward_zero(in_float32))


def test_number_that_float32_rounds_to_100_stays_100() -> None:
    """The FLOAT32 number before 100 is 100 - 7.6e-6."""
    values = np.array([100 - 3.4e-6, 100 - 1e-5])
    assert half.toward_zero(values).tolist() == [100, 99.9375]
    assert half.to_nearest(values).tolist() == [100, 100]
