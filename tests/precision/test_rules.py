"""Rules judge intervals, candidates, flushed and signed zeros, with figures over all elements.

The tested code is in `dmlconf/precision/rules.py`, `dmlconf/precision/compare.py`,
`dmlconf/permitted/element_wise/unary.py` and `schemas/operators/`.
"""

from __future__ import annotations

import math
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


def test_an_interval_has_the_margin_from_the_expected_value() -> None:
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    allowed = Allowance(interval=(floats(0), floats(4)))
    assert compare(floats(2), floats(1), rule, allowed).margin == pytest.approx(1 / 3)
    assert compare(floats(0.5), floats(1), rule, allowed).margin == 0.5


def one_of(*candidates: tuple[Array, Array]) -> tuple[PrecisionRule, Allowance]:
    return PrecisionRule(RuleKind.ONE_OF, 0, "test"), Allowance(candidates=candidates)


def test_the_rule_one_of_permits_each_candidate_and_nothing_between_candidates() -> None:
    rule, allowed = one_of((floats(1), floats(1.5)), (floats(3), floats(3)))
    for actual, right in ((1, True), (1.25, True), (3, True), (2, False), (3.5, False), (0, False)):
        assert compare(floats(actual), floats(1), rule, allowed).passed == right
    assert not compare(floats(math.nan), floats(1), rule, allowed).passed


def test_the_rule_one_of_permits_no_integers_but_the_candidates() -> None:
    candidates = [(np.array([value], np.int8),) * 2 for value in (-56, 127)]
    rule, allowed = one_of(*[(low, high) for low, high in candidates])
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


def test_a_choice_of_another_candidate_uses_all_of_the_limit() -> None:
    rule, allowed = one_of((floats(0), floats(4)), (floats(9), floats(9)))
    assert compare(floats(9), floats(1), rule, allowed).margin == 1
    assert compare(floats(0.5), floats(1), rule, allowed).margin == 0.5


def test_the_rule_one_of_does_not_excuse_a_wrong_expectation() -> None:
    rule, allowed = one_of((floats(2), floats(2)), (floats(3), floats(3)))
    assert not compare(floats(2), floats(7), rule, allowed).passed
    assert compare(floats(7), floats(7), rule, allowed).passed


def test_a_candidate_that_holds_all_numbers_leaves_the_element_undefined() -> None:
    rule, allowed = one_of((floats(2), floats(2)), (floats(-math.inf), floats(math.inf)))
    for actual in (7.0, math.nan, -math.inf):
        comparison = compare(floats(actual), floats(2), rule, allowed)
        assert comparison.passed
        assert comparison.margin == 0


@pytest.mark.parametrize("kind", ["accumulate", "interval", "one of"])
def test_a_rule_that_needs_the_reference_fails_without_it(kind: str) -> None:
    with pytest.raises(ValueError, match="needs the"):
        compare(floats(1), floats(2), PrecisionRule(RuleKind(kind), 1, "test"))


def test_subnormal_results_may_be_zero_where_arithmetic_flushes() -> None:
    small = floats(1e-40, -1e-40, 1e-30)
    flushed = floats(0, -0.0, 1e-30)
    assert compare(flushed, small, ulp(1, flushes=True)).passed
    assert compare(flushed, small, ulp(1)).differing == 2
    assert compare(floats(0, 0, 0), small, ulp(1, flushes=True)).differing == 1


def test_subnormal_inputs_may_be_taken_for_zero() -> None:
    expected, without = floats(0.5, 2, 3), floats(math.nan, math.inf, 3)
    rule = ulp(1, flushes=True)
    allowed = Allowance(flushed=(expected, without))
    assert compare(floats(math.nan, 2, 3), expected, rule, allowed).passed
    assert compare(floats(0.5, math.inf, 3), expected, rule, allowed).passed
    assert compare(floats(0.5, math.nan, 3), expected, rule, allowed).differing == 1
    assert compare(floats(math.nan, 2, 3), expected, ulp(1), allowed).differing == 1


def test_the_expected_value_may_be_flushed_as_well() -> None:
    rule = ulp(1, flushes=True)
    assert compare(floats(1e-40), floats(0), rule).passed
    right, without = floats(0.5, 2), floats(math.nan, math.inf)
    allowed = Allowance(flushed=(right, without))
    assert compare(right, without, rule, allowed).passed
    assert not compare(right, floats(math.nan, 7), rule, allowed).passed


def test_an_interval_does_not_excuse_a_wrong_expectation() -> None:
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    allowed = Allowance(interval=(np.array([2]), np.array([3])))
    assert not compare(np.array([2]), np.array([7]), rule, allowed).passed


def test_the_step_beyond_the_largest_number_is_infinity() -> None:
    largest = floats(float(np.finfo(np.float32).max))
    assert compare(floats(math.inf), largest, ulp(1)).margin == 1
    assert compare(largest, floats(math.inf), ulp(1)).passed
    assert not compare(-largest, floats(math.inf), ulp(1)).passed


@given(
    st.sampled_from(FLOATS),
    st.integers(0, 200),
    st.lists(st.integers(0, 400), min_size=1, max_size=40),
)
def test_margin_and_histogram_cover_every_element(
    data_type: DataType, limit: int, steps: list[int]
) -> None:
    width = data_type.dtype.itemsize
    start = np.full(len(steps), 1, data_type.dtype).view(f"i{width}")
    actual = (start + np.array(steps, f"i{width}")).view(data_type.dtype)
    comparison = compare(actual, start.view(data_type.dtype), ulp(max(limit, 1)))
    assert comparison.margin == max(steps) / max(limit, 1)
    assert comparison.differing == sum(step > max(limit, 1) for step in steps)
    if any(steps):
        assert sum(comparison.histogram.values()) == len(steps)
        for step in steps:
            assert comparison.histogram[2.0 ** (step.bit_length() - 1) if step else 0.0] > 0


def test_the_histogram_counts_nan_separately() -> None:
    comparison = compare(floats(1, math.nan, 2), floats(1, 1, 4), ulp(1))
    assert comparison.histogram == {0.0: 1, 2.0**23: 1, math.inf: 1}
    assert comparison.worst_ulp == math.inf


@pytest.mark.parametrize("size", [1 << 15, (1 << 15) + 1, 100_000])
def test_large_outputs_are_compared_to_their_last_element(size: int) -> None:
    expected = np.arange(size, dtype=np.float32).reshape(-1, 1)
    actual = expected.copy()
    actual[-1] += 1
    actual[7] = -1
    comparison = compare(actual, expected, PrecisionRule(RuleKind.EXACT, 0, "test"))
    assert comparison.differing == 2
    assert [difference.coordinates for difference in comparison.first] == [(7, 0), (size - 1, 0)]
    assert comparison.elements == size


@pytest.mark.parametrize("actual", [0.0, 1e38, -math.inf, math.nan])
def test_any_value_of_an_undefined_element_is_right_and_has_the_margin_0(actual: float) -> None:
    allowed = Allowance(interval=(floats(-math.inf, 2), floats(math.inf, 4)))
    rule = PrecisionRule(RuleKind.INTERVAL, 0, "test")
    comparison = compare(floats(actual, 3), floats(7, 3), rule, allowed)
    assert comparison.passed
    assert comparison.margin == 0
    assert not compare(floats(actual, 5), floats(7, 3), rule, allowed).passed


def test_zeros_of_different_signs_differ_only_if_the_rule_says_so() -> None:
    zeros, others = floats(0.0, -0.0, 1), floats(-0.0, -0.0, 1)
    ends = Allowance(candidates=((others, others),))
    for signed in (True, False):
        rule = PrecisionRule(RuleKind.ONE_OF, 0, "test", flushes=True, signed_zeros=signed)
        assert compare(zeros, others, rule, ends).differing == signed
        assert compare(others, others, rule, ends).passed


@pytest.mark.parametrize("operator", ["ceil", "floor", "round"])
def test_ceil_floor_and_round_fail_if_they_drop_the_sign_of_zero(operator: str) -> None:
    suite = bundled(f"element_wise_{operator}")
    planned = [each for each in suite.plan() if "special-numbers" in each.identifier]
    dropped = 0
    for case in map(build, planned):
        right = evaluate(case)["OutputTensor"]
        rule, allowance = case.rule("OutputTensor"), CaseAllowances(case).of("OutputTensor")
        assert compare(right, right, rule, allowance).passed
        if rule.signed_zeros:
            dropped += compare(right + 0, right, rule, allowance).differing
    assert dropped
