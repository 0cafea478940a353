"""`partial_mean` bounds every partial sum of a mean, whatever the order of the additions.

The tested code is in `dmlconf/permitted/normalization/parameters.py`.
"""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.permitted.normalization.parameters import partial_mean


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=12), st.randoms())
def test_no_order_of_additions_has_a_greater_partial_sum(
    terms: list[int], order: random.Random
) -> None:
    values = np.array([terms], np.float64)
    most = partial_mean(values, (1,))[0, 0] * len(terms)
    order.shuffle(terms)
    # The mean and its product with the number of terms are rounded.
    assert np.abs(np.cumsum(terms)).max() <= most + 1e-9
    assert np.abs(np.cumsum(sorted(terms))).max() <= most + 1e-9


def test_greatest_partial_sum_has_terms_of_one_sign() -> None:
    values = np.array([[1.0, 2.0, 3.0], [-4.0, 1.0, 1.0]])
    assert partial_mean(values, (1,)).ravel().tolist() == [(1 + 2 + 3) / 3, 4 / 3]
