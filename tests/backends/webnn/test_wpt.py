"""WebNN's own tests agree with translation, reference and judging, or are explained.

They are read from a checkout of web-platform-tests, which is no package: without one this says
nothing, and `wpt_results.yaml` has what came of it last.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.backends.webnn.wpt_cases.wpt_tests import VARIABLE, Tensor, Tolerance
from tests.backends.webnn.wpt_results import FILE, results


@pytest.mark.webnn
@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no checkout of wpt")
def test_webnns_own_tests_pass_or_are_explained() -> None:
    actual = results(Path(os.environ[VARIABLE]))
    assert actual["failed"] == {}
    assert sum(actual["passed"].values()) > 1000
    expected = yaml.safe_load(FILE.read_text("utf-8"))
    if all(actual[name] == expected[name] for name in ("wpt", "chromium")):
        # `python -m tests.backends.webnn.wpt_results` writes the file anew.
        assert actual == expected


@pytest.mark.parametrize(
    ("units", "accepted"), [(0, False), (1, False), (2, True)], ids=["none", "one", "two"]
)
def test_units_in_the_last_place_are_counted_across_zero(units: float, accepted: bool) -> None:
    least = np.finfo(np.float16).smallest_subnormal
    tolerance = Tolerance("ULP", units)
    actual, expected = np.array([least, -0.0, np.nan]), np.array([-least, 0.0, np.nan])
    assert tolerance.accepts(actual.astype("f2"), expected.astype("f2")) is accepted


def test_nan_is_near_nan_only() -> None:
    nan, one = np.array([np.nan], np.float32), np.array([1], np.float32)
    for tolerance in (Tolerance("ULP", 1e6), Tolerance("ATOL", 1e6)):
        assert tolerance.accepts(nan, nan)
        assert not tolerance.accepts(nan, one)
        assert not tolerance.accepts(one, nan)


def test_one_element_stands_for_all() -> None:
    np.testing.assert_array_equal(Tensor("int64", (2, 1), "-5").array(), [[-5], [-5]])
    assert np.signbit(Tensor("float32", (), ["-0"]).array())
