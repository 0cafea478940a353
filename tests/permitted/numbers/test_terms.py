"""Rounding errors of a sum are independent if its terms vary, and alike if terms are equal.

The tested code is in `dmlconf/permitted/numbers/terms.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.permitted.numbers.terms import alike, steps_beside_sum, terms_vary
from dmlconf.precision.accumulation import roundings
from dmlconf.tensors.datatypes import Array

RANDOM = np.random.default_rng(0).uniform(0, 1, (3, 500)).astype(np.float32)


def test_many_random_terms_vary_along_any_axes() -> None:
    assert terms_vary(RANDOM, (1,))
    assert terms_vary(RANDOM.T, (0,))
    assert terms_vary(RANDOM.reshape(3, 5, 100), (1, -1))


@pytest.mark.parametrize(
    "terms",
    [
        np.full((3, 500), 0.1, np.float32),
        np.where(np.arange(3)[:, np.newaxis] == 1, np.float32(0.1), RANDOM),
        np.arange(1500, dtype=np.float32).reshape(3, 500),
        RANDOM.astype(np.float16),
        np.tile(RANDOM[:, :20], 25),
        np.where(np.arange(500) % 5 < 2, np.float32(0.7), RANDOM),
        np.where(np.arange(500) % 10 == 3, np.float32(0.7), RANDOM),
        np.where(np.arange(500) == 0, np.float32(1e8), RANDOM),
    ],
    ids=[
        "equal",
        "equal in one sum",
        "integers",
        "of FLOAT16",
        "of 20 numbers",
        "two of five equal",
        "one of ten equal",
        "lost beside a large one",
    ],
)
def test_equal_rounded_or_lost_terms_do_not_vary(terms: Array) -> None:
    assert not terms_vary(terms, (1,))


def test_random_terms_vary_even_if_a_third_are_zeros() -> None:
    assert terms_vary(np.where(np.arange(500) % 3 == 0, np.float32(0), RANDOM), (1,))


def test_error_of_many_equal_terms_grows_with_their_number() -> None:
    """`alike` is how many times the errors of equal terms exceed `roundings`."""
    equal = np.full((3, 500), 0.7, np.float32)
    assert alike(equal, (1,)) * roundings(500) == pytest.approx(500)
    assert alike(RANDOM, (1,)) == alike(equal[:, :63], (1,)) == 1
    assert alike(equal.astype(np.float16), (1,)) == 1


def test_terms_vary_from_64_terms_up_to_4096_sums() -> None:
    assert terms_vary(RANDOM[:, :64], (1,))
    assert not terms_vary(RANDOM[:, :63], (1,))
    many = np.tile(RANDOM, (1366, 1))
    assert terms_vary(many[:4096], (1,))
    assert not terms_vary(many[:4097], (1,))


def test_errors_of_serial_sums_are_random_if_terms_vary() -> None:
    for terms, vary in ((RANDOM, True), (np.full((3, 500), 0.7, np.float32), False)):
        exact = terms.sum(1, dtype=np.float64)
        serial = np.cumsum(terms, 1, dtype=np.float32)[:, -1]
        half_ulps = np.abs(serial - exact) / exact * 2**24
        assert terms_vary(terms, (1,)) == vary
        # Random errors use less than half of the limit.
        assert (half_ulps < 0.5 * roundings(500)).all() == vary


def test_errors_beside_a_sum_do_not_grow_with_its_terms() -> None:
    """The rule multiplies the result by `roundings`."""
    for terms in (1, 10, 1000):
        half_ulps = steps_beside_sum(np.array([6.0]), terms) * roundings(terms)
        assert half_ulps == pytest.approx(6)
