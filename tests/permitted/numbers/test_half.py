"""`half.toward_zero` rounds numbers to FLOAT16 toward zero.

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
    np.testing.assert_array_equal(half.toward_zero(values), toward_zero(values))
