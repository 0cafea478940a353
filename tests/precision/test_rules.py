"""The rules `interval` and `one of`, flushed numbers, signs of zero, margins and histograms.

A margin is the share of its limit that the worst element uses.

The tested code is in `dmlconf/precision/rules.py` and `dmlconf/precision/compare.py`; for CEIL,
FLOOR and ROUND also in `dmlconf/permitted/element_wise/unary.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.cases.building.build import build
from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance
from dmlconf.precision.compare import compare
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array, DataType
from tests.bundled import bundled

FLOATS = [DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64]


def floats(*values: float, data_type: Any = np.float32) -> Array:
    return np.array(values, data_type)


def ulp(limit: float, *, flushes: bool = False) -> PrecisionRule:
    return PrecisionRule(RuleKind.ULP, limit, "test", flushes=flushes)


def test_an_interval_permits_the_values_within_and_no_others() -> None:
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    allowed = Allowance(interval=(np.array([2, 2, 2]), np.array([3, 3, 3])))
    expected = np.array([2, 2, 3])
    assert compare(np.array([3, 2, 2]), expected, rule, allowed).passed
    comparison = compare(np.array([4, 1, 2]), expected, rule, allowed)
    assert (comparison.differing, comparison.margin) == (2, math.inf)


def test_margin_is_the_share_of_the_distance_to_the_end() -> None:
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    allowed = Allowance(interval=(floats(0), floats(4)))
    assert compare(floats(2), floats(1), rule, allowed).margin == pytest.approx((2 - 1) / (4 - 1))
    assert compare(floats(0.5), floats(1), rule, allowed).margin == (1 - 0.5) / (1 - 0)


def one_of(*candidates: tuple[Array, Array]) -> tuple[PrecisionRule, Allowance]:
    return PrecisionRule(RuleKind.ONE_OF, 0, "test"), Allowance(candidates=candidates)


def test_one_of_permits_each_candidate_and_nothing_else() -> None:
    rule, allowed = one_of((floats(1), floats(1.5)), (floats(3), floats(3)))
    for actual, right in ((1, True), (1.25, True), (3, True), (2, False), (3.5, False), (0, False)):
        assert compare(floats(actual), floats(1), rule, allowed).passed == right
    assert not compare(floats(math.nan), floats(1), rule, allowed).passed


def test_one_of_permits_no_integers_but_the_candidates() -> None:
    wrapped, saturated = np.array([-56], np.int8), np.array([127], np.int8)  # Of 100 + 100.
    rule, allowed = one_of((wrapped, wrapped), (saturated, saturated))
    expected = np.array([127], np.int8)
    right = [
        value
        for value in range(-128, 128)
        if compare(np.array([value], np.int8), expected, rule, allowed).passed
    ]
    assert right == [-56, 127]


def test_a_candidate_may_be_nan() -> None:
    rule, allowed = one_of((floats(2), floats(2)), (floats(math.nan), floats(math.nan)))
    assert compare(floats(math.nan), floats(2), rule, allowed).passed
    assert compare(floats(2), floats(math.nan), rule, allowed).passed
    assert not compare(floats(3), floats(math.nan), rule, allowed).passed


def test_result_within_another_candidate_has_margin_1() -> None:
    rule, allowed = one_of((floats(0), floats(4)), (floats(9), floats(9)))
    assert compare(floats(9), floats(1), rule, allowed).margin == 1
    assert compare(floats(0.5), floats(1), rule, allowed).margin == 0.5


def test_expected_value_that_is_no_candidate_permits_only_itself() -> None:
    rule, allowed = one_of((floats(2, 2), floats(2, 2)), (floats(3, 3), floats(3, 3)))
    expected = floats(7, 2)
    assert compare(floats(7, 3), expected, rule, allowed).passed
    assert compare(floats(2, 3), expected, rule, allowed).differing == 1


def test_unbounded_candidate_permits_any_value_with_margin_0() -> None:
    rule, allowed = one_of((floats(2), floats(2)), (floats(-math.inf), floats(math.inf)))
    for actual in (7, math.nan, -math.inf):
        comparison = compare(floats(actual), floats(2), rule, allowed)
        assert comparison.passed
        assert comparison.margin == 0


@pytest.mark.parametrize(
    ("kind", "needed"),
    [("accumulate", "error scale"), ("interval", "interval"), ("one of", "candidates")],
)
def test_rule_without_its_allowance_raises_an_error(kind: str, needed: str) -> None:
    with pytest.raises(ValueError, match=f"needs the {needed}"):
        compare(floats(1), floats(2), PrecisionRule(RuleKind(kind), 1, "test"))


def test_flushing_rule_permits_zero_for_subnormal_results_only() -> None:
    small = floats(1e-40, -1e-40, float(np.finfo(np.float32).tiny))
    flushed = floats(0, -0.0, small[2])
    assert compare(flushed, small, ulp(1, flushes=True)).passed
    assert compare(flushed, small, ulp(1)).differing == 2
    assert compare(floats(0, 0, 0), small, ulp(1, flushes=True)).differing == 1


def test_subnormal_inputs_may_be_taken_for_zero() -> None:
    """`with_zeros` is what the operator gives if subnormal inputs count as 0."""
    expected, with_zeros = floats(0.5, 2, 3), floats(math.nan, math.inf, 3)
    rule = ulp(1, flushes=True)
    allowed = Allowance(flushed=(expected, with_zeros))
    assert compare(floats(math.nan, 2, 3), expected, rule, allowed).passed
    assert compare(floats(0.5, math.inf, 3), expected, rule, allowed).passed
    assert compare(floats(0.5, math.nan, 3), expected, rule, allowed).differing == 1
    assert compare(floats(math.nan, 2, 3), expected, ulp(1), allowed).differing == 1


def test_expected_values_may_come_from_a_device_that_flushes() -> None:
    rule = ulp(1, flushes=True)
    assert compare(floats(1e-40), floats(0), rule).passed
    right, with_zeros = floats(0.5, 2), floats(math.nan, math.inf)
    allowed = Allowance(flushed=(right, with_zeros))
    assert compare(right, with_zeros, rule, allowed).passed
    assert not compare(right, floats(math.nan, 7), rule, allowed).passed


def test_a_subnormal_number_is_wrong_where_the_reference_gives_zero() -> None:
    """The bits of the integer 1, or of a FLOAT16 number, are a subnormal FLOAT32 number."""
    rule = ulp(1, flushes=True)
    zero, flushed = floats(0, 1e-40), floats(0, 0)
    allowed = Allowance(right=zero)
    for expected in (zero, flushed):
        assert compare(zero, expected, rule, allowed).passed
        assert compare(flushed, expected, rule, allowed).passed
        assert compare(floats(1e-40, 1e-40), expected, rule, allowed).differing == 1


def test_an_expected_value_outside_its_interval_permits_only_itself() -> None:
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    allowed = Allowance(interval=(np.array([2, 2]), np.array([3, 3])))
    expected = np.array([7, 2])
    assert compare(np.array([7, 3]), expected, rule, allowed).passed
    assert compare(np.array([2, 3]), expected, rule, allowed).differing == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_the_step_beyond_the_largest_number_is_infinity(sign: int) -> None:
    largest, infinity = sign * floats(float(np.finfo(np.float32).max)), floats(sign * math.inf)
    assert compare(infinity, largest, ulp(1)).margin == 1
    assert compare(largest, infinity, ulp(1)).passed
    assert not compare(-largest, infinity, ulp(1)).passed


@given(
    st.sampled_from(FLOATS),
    st.integers(1, 200),
    st.lists(st.integers(0, 400), min_size=1, max_size=40),
)
def test_margin_and_histogram_cover_all_elements(
    data_type: DataType, limit: int, steps: list[int]
) -> None:
    """The histogram counts distances from 2^k to below 2^(k + 1) under 2^k, and 0 under 0."""
    width = data_type.dtype.itemsize
    start = np.full(len(steps), 1, data_type.dtype).view(f"i{width}")
    actual = (start + np.array(steps, f"i{width}")).view(data_type.dtype)
    comparison = compare(actual, start.view(data_type.dtype), ulp(limit))
    assert comparison.margin == max(steps) / limit
    assert comparison.differing == sum(step > limit for step in steps)
    powers = Counter(2.0 ** (step.bit_length() - 1) if step else 0.0 for step in steps)
    assert comparison.histogram == (powers if any(steps) else {})


def test_the_histogram_counts_nan_as_infinitely_far() -> None:
    """From 2 to 4 are 2^23 steps."""
    comparison = compare(floats(1, math.nan, 2), floats(1, 1, 4), ulp(1))
    assert comparison.histogram == {0.0: 1, 2.0**23: 1, math.inf: 1}
    assert comparison.worst_ulp == math.inf


@pytest.mark.parametrize("size", [1 << 15, (1 << 15) + 1, 100_000])
def test_large_outputs_are_compared_to_their_last_element(size: int) -> None:
    """Outputs are compared in blocks of 2^15 elements."""
    expected = np.arange(size, dtype=np.float32).reshape(-1, 1)
    actual = expected.copy()
    actual[-1] += 1
    actual[7] = -1
    comparison = compare(actual, expected, PrecisionRule(RuleKind.EXACT, 0, "test"))
    assert comparison.differing == 2
    assert [difference.coordinates for difference in comparison.first] == [(7, 0), (size - 1, 0)]
    assert comparison.elements == size


@pytest.mark.parametrize("actual", [0.0, 1e38, -math.inf, math.nan])
def test_open_element_permits_any_value_with_margin_0(actual: float) -> None:
    allowed = Allowance(interval=(floats(-math.inf, 2), floats(math.inf, 4)))
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    comparison = compare(floats(actual, 3), floats(7, 3), rule, allowed)
    assert comparison.passed
    assert comparison.margin == 0
    assert not compare(floats(actual, 5), floats(7, 3), rule, allowed).passed


@pytest.mark.parametrize("actual", [-128, 5, 127])
def test_integer_is_open_if_its_interval_is_the_whole_type(actual: int) -> None:
    allowed = Allowance(interval=(np.array([-128], np.int8), np.array([127], np.int8)))
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    comparison = compare(np.array([actual], np.int8), np.array([7], np.int8), rule, allowed)
    assert comparison.passed
    assert comparison.margin == 0


def test_zeros_of_different_signs_differ_under_signed_rules() -> None:
    both, negative = floats(0.0, -0.0, 1), floats(-0.0, -0.0, 1)
    allowed = Allowance(candidates=((negative, negative),))
    for signed in (True, False):
        rule = PrecisionRule(RuleKind.ONE_OF, 0, "test", flushes=True, signed_zeros=signed)
        assert compare(both, negative, rule, allowed).differing == (1 if signed else 0)
        assert compare(negative, negative, rule, allowed).passed


@pytest.mark.parametrize("operator", ["ceil", "floor", "round"])
def test_ceil_floor_and_round_must_keep_negative_zero(operator: str) -> None:
    """One result of each case is -0. ROUND toward infinity adds a half, and may give 0."""
    suite = bundled(f"element_wise_{operator}")
    planned = [each for each in suite.plan() if "special-numbers" in each.identifier]
    assert planned
    for case in map(build, planned):
        right = evaluate(case)["OutputTensor"]
        rule, allowance = case.rule("OutputTensor"), CaseAllowances(case).of("OutputTensor")
        assert compare(right, right, rule, allowance).passed
        adds_half = case.desc.get("RoundingMode") == "TOWARD_INFINITY"
        with_positive_zeros = right + 0
        differing = compare(with_positive_zeros, right, rule, allowance).differing
        assert differing == (0 if adds_half else 1), case.identifier
