"""`allowed_at` shows the values that a rule permits for single elements.

The tested code is in `dmlconf/precision/allowed.py`.
"""

from __future__ import annotations

import math

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance
from dmlconf.precision.allowed import Ends, allowed_at
from dmlconf.precision.compare import compare
from dmlconf.tensors.datatypes import Array

ONE_OF = PrecisionRule(RuleKind.ONE_OF, 0, "test")


def single(value: float) -> Array:
    return np.array([value], np.float32)


def allowance(*candidates: Ends) -> Allowance:
    return Allowance(candidates=[(single(low), single(high)) for low, high in candidates])


def allowed(expected: float, *candidates: Ends) -> list[Ends]:
    """Return what is allowed for one FLOAT32 element, if its candidates are these intervals."""
    [ends] = allowed_at(single(expected), ONE_OF, allowance(*candidates), [0])
    return ends


def test_each_candidate_is_allowed_once() -> None:
    assert allowed(1, (1, 2), (4, 5), (1, 2)) == [(1, 2), (4, 5)]


def test_an_expected_value_that_is_no_candidate_allows_only_itself() -> None:
    """A candidate that is NaN does not make 7 a candidate: `compare` does not permit 1 for it."""
    cases: list[list[Ends]] = [[(1, 2)], [(1, 2), (math.nan, math.nan)]]
    for candidates in cases:
        assert allowed(7, *candidates) == [(7, 7)]
        assert not compare(single(1), single(7), ONE_OF, allowance(*candidates)).passed


def test_an_expected_nan_allows_all_candidates_if_one_is_nan_or_unbounded() -> None:
    of_nan = allowed(math.nan, (1, 2), (math.nan, math.nan))
    np.testing.assert_array_equal(of_nan, [(1, 2), (math.nan, math.nan)])
    assert allowed(math.nan, (-math.inf, math.inf)) == [(-math.inf, math.inf)]
