"""`allowed_at` shows the values that a rule permits for single elements, `off_by` their distance.

The tested code is in `dmlconf/precision/allowed.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance
from dmlconf.precision.allowed import Ends, allowed_at, off_by
from dmlconf.precision.compare import compare
from dmlconf.tensors.datatypes import Array

ONE_OF = PrecisionRule(RuleKind.ONE_OF, 0, "test")


def single(value: float) -> Array:
    return np.array([value], np.float32)


def allowance(*candidates: Ends) -> Allowance:
    return Allowance(candidates=[(single(low), single(high)) for low, high in candidates])


def allowed(expected: float, *candidates: Ends) -> list[Ends]:
    """Return what is allowed for one FLOAT32 element with these candidates."""
    [ends] = allowed_at(single(expected), ONE_OF, allowance(*candidates), [0])
    return ends


def test_each_candidate_is_allowed_once() -> None:
    assert allowed(1, (1, 2), (4, 5), (1, 2)) == [(1, 2), (4, 5)]


def test_only_the_first_four_candidates_are_shown() -> None:
    candidates = [(number, number) for number in range(1, 7)]
    assert allowed(1, *candidates) == candidates[:4]


def test_rule_without_candidates_allows_one_interval_of_each_element() -> None:
    rule = PrecisionRule(RuleKind.ABSOLUTE, 0.5, "test")
    expected = np.array([1, 5], np.float32)
    assert allowed_at(expected, rule, Allowance(), [1, 0]) == [[(4.5, 5.5)], [(0.5, 1.5)]]


@pytest.mark.parametrize(
    ("kind", "actual", "expected", "distance"),
    [
        (RuleKind.ULP, 1 + 3 * 2.0**-23, 1, (3, "ULP")),
        (RuleKind.RELATIVE, 3, 2, (0.5, "relative")),
        (RuleKind.RELATIVE, 3, 0, (3, "")),
        (RuleKind.ABSOLUTE, 3, 2, (1, "")),
        (RuleKind.ULP, math.inf, 2, (None, "")),
        (RuleKind.RELATIVE, 2, math.nan, (None, "")),
    ],
)
def test_unit_of_a_distance_is_that_of_the_rule(
    kind: RuleKind, actual: float, expected: float, distance: tuple[float | None, str]
) -> None:
    assert off_by(actual, expected, PrecisionRule(kind, 1, "test"), single(0)) == distance


def test_distance_of_integers_is_their_difference_under_any_rule() -> None:
    for kind in (RuleKind.ULP, RuleKind.RELATIVE):
        assert off_by(0, 2, PrecisionRule(kind, 1, "test"), np.zeros(1, np.uint8)) == (2, "")


def test_expected_value_that_is_no_candidate_allows_only_itself() -> None:
    cases: list[list[Ends]] = [[(1, 2)], [(1, 2), (math.nan, math.nan)]]
    for candidates in cases:
        assert allowed(7, *candidates) == [(7, 7)]
        assert not compare(single(1), single(7), ONE_OF, allowance(*candidates)).passed


def test_expected_nan_allows_all_candidates_if_one_includes_nan() -> None:
    of_nan = allowed(math.nan, (1, 2), (math.nan, math.nan))
    np.testing.assert_array_equal(of_nan, [(1, 2), (math.nan, math.nan)])
    assert allowed(math.nan, (-math.inf, math.inf)) == [(-math.inf, math.inf)]
