"""The rules `exact`, `ulp`, `absolute` and `relative`, and what a comparison reports.

The tested code is in `dmlconf/precision/compare.py` and `dmlconf/precision/rules.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.compare import MOST_DIFFERENCES, Difference, compare
from dmlconf.tensors.datatypes import Array, DataType

EXACT = PrecisionRule(RuleKind.EXACT, 0, "test")
FLOATS = [DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64]

NANS = {
    DataType.FLOAT16: (0x7E00, 0xFE01),
    DataType.FLOAT32: (0x7FC00000, 0xFFC00001),
    DataType.FLOAT64: (0x7FF8000000000000, 0xFFF8000000000001),
}
"""The bits of two NaNs."""


def rule(kind: str, limit: float) -> PrecisionRule:
    return PrecisionRule(RuleKind(kind), limit, "test")


def floats(*values: float, data_type: DataType = DataType.FLOAT32) -> Array:
    return np.array(values, data_type.dtype)


def differing(actual: Array, expected: Array, precision: PrecisionRule) -> list[int]:
    """Return the indices that differ if each element is compared alone."""
    return [
        index
        for index in range(actual.size)
        if compare(actual[index : index + 1], expected[index : index + 1], precision).differing
    ]


@pytest.mark.parametrize("data_type", DataType)
def test_equal_arrays_do_not_differ_under_four_rules(data_type: DataType) -> None:
    values = np.arange(12, dtype=data_type.dtype).reshape(3, 4)
    for precision in (EXACT, rule("ulp", 1), rule("absolute", 0.1), rule("relative", 0.1)):
        comparison = compare(values, values.copy(), precision)
        assert (comparison.elements, comparison.differing, comparison.first) == (12, 0, ())
        assert comparison.worst_coordinates is None
        assert comparison.worst_ulp == (0.0 if data_type.is_float else None)


def test_exact_rule_lists_differing_integers_in_row_major_order() -> None:
    expected = np.arange(6, dtype=np.int32).reshape(2, 3)
    actual = expected.copy()
    actual[0, 1], actual[1, 2] = 7, -8
    comparison = compare(actual, expected, EXACT)
    assert comparison.differing == 2
    assert comparison.first == (Difference((0, 1), 1, 7), Difference((1, 2), 5, -8))
    assert comparison.worst_ulp is None


def test_a_comparison_lists_the_first_differences_and_counts_all() -> None:
    expected = np.zeros(100, np.uint8)
    comparison = compare(expected + np.uint8(1), expected, EXACT)
    assert comparison.differing == 100
    assert [difference.coordinates for difference in comparison.first] == [
        (index,) for index in range(MOST_DIFFERENCES)
    ]


@pytest.mark.parametrize("data_type", FLOATS)
def test_the_exact_rule_distinguishes_zeros_by_their_sign(data_type: DataType) -> None:
    positive, negative = floats(0.0, data_type=data_type), floats(-0.0, data_type=data_type)
    assert compare(negative, positive, EXACT).differing == 1
    assert compare(positive, negative, EXACT).differing == 1
    assert compare(positive, negative, rule("ulp", 1)).differing == 0


@pytest.mark.parametrize("kind", ["exact", "ulp", "absolute", "relative"])
@pytest.mark.parametrize("data_type", FLOATS)
def test_any_nan_equals_any_nan_and_no_number(kind: str, data_type: DataType) -> None:
    precision = rule(kind, 10.0)
    nan, other = (np.array([bits], f"u{data_type.bits // 8}") for bits in NANS[data_type])
    nan, other = nan.view(data_type.dtype), other.view(data_type.dtype)
    assert np.isnan(nan[0])
    assert np.isnan(other[0])
    assert compare(nan, other, precision).differing == 0
    one = floats(1.0, data_type=data_type)
    for actual, expected in ((nan, one), (one, nan)):
        comparison = compare(actual, expected, precision)
        assert comparison.differing == 1
        assert comparison.worst_ulp == math.inf


@pytest.mark.parametrize("kind", ["exact", "ulp", "absolute", "relative"])
def test_an_infinity_equals_itself_only(kind: str) -> None:
    precision = rule(kind, 0.5)
    actual = floats(math.inf, -math.inf, math.inf, 1.0, math.inf, -math.inf)
    expected = floats(math.inf, -math.inf, -math.inf, math.inf, 3e38, -3e38)
    assert differing(actual, expected, precision) == [2, 3, 4, 5]


@given(st.sampled_from(FLOATS), st.integers(0, 6), st.integers(1, 6), st.booleans())
def test_the_ulp_rule_accepts_its_limit_and_nothing_beyond(
    data_type: DataType, steps: int, limit: int, up: bool
) -> None:
    expected = floats(1.0, 0.0, -3.5, data_type=data_type)
    actual = expected
    for _ in range(steps):
        actual = np.nextafter(actual, data_type.dtype.type(math.inf if up else -math.inf))
    comparison = compare(actual, expected, rule("ulp", limit))
    assert comparison.differing == (3 if steps > limit else 0)
    assert comparison.worst_ulp == steps


def test_worst_element_is_the_farthest_one() -> None:
    expected = floats(1, 1, 1, 1).reshape(2, 2)
    actual = expected.copy()
    actual[0, 1] = 1.5
    actual[1, 0] = 100
    comparison = compare(actual, expected, rule("ulp", 1))
    assert comparison.worst_coordinates == (1, 0)
    # 100 is 2^6 * 1.5625.
    assert comparison.worst_ulp == (6 + 0.5625) * 2**23


def test_worst_element_is_reported_even_if_permitted() -> None:
    expected = floats(1, 1)
    actual = floats(1, np.nextafter(np.float32(1), np.float32(2)))
    comparison = compare(actual, expected, rule("ulp", 4))
    assert (comparison.differing, comparison.worst_ulp) == (0, 1.0)
    assert comparison.worst_coordinates == (1,)


NUMBERS = st.floats(-100, 100, width=32)


@given(NUMBERS, NUMBERS, st.floats(0.001, 10))
def test_the_absolute_rule_agrees_with_its_formula(a: float, e: float, limit: float) -> None:
    comparison = compare(floats(a), floats(e), rule("absolute", limit))
    assert comparison.differing == int(abs(a - e) > limit)


@given(NUMBERS, NUMBERS, st.floats(0.001, 2))
def test_the_relative_rule_agrees_with_its_formula(a: float, e: float, limit: float) -> None:
    comparison = compare(floats(a), floats(e), rule("relative", limit))
    assert comparison.differing == int(abs(a - e) > limit * abs(e))


@pytest.mark.parametrize(("kind", "indices"), [("absolute", [3]), ("relative", [1, 3])])
def test_absolute_and_relative_rules_also_apply_to_integers(kind: str, indices: list[int]) -> None:
    limits = {"absolute": 2.0, "relative": 0.1}
    expected = np.array([100, 1, 0, -5], np.int32)
    actual = np.array([101, 2, 0, -8], np.int32)
    assert differing(actual, expected, rule(kind, limits[kind])) == indices


@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_differences_of_unsigned_integers_do_not_wrap(kind: str) -> None:
    one, two = np.array([1], np.uint8), np.array([2], np.uint8)
    for actual, expected in ((one, two), (two, one)):
        assert compare(actual, expected, rule(kind, 1)).differing == 0


@pytest.mark.parametrize("data_type", DataType)
def test_arrays_without_elements_do_not_differ(data_type: DataType) -> None:
    empty: Array = np.empty((0, 3), data_type.dtype)
    for precision in (EXACT, rule("ulp", 1), rule("absolute", 0.1), rule("relative", 0.1)):
        comparison = compare(empty, empty, precision)
        assert (comparison.elements, comparison.differing, comparison.first) == (0, 0, ())
        assert comparison.passed


@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, float), (np.int8, int)])
def test_differences_hold_numbers_of_python(dtype: Any, kind: type[Any]) -> None:
    [difference] = compare(np.array([2], dtype), np.array([1], dtype), EXACT).first
    assert (type(difference.actual), type(difference.expected)) == (kind, kind)
