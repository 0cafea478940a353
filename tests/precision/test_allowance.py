"""An element judged alone gets the same result as within its whole output.

The tested code is in `dmlconf/precision/allowance.py` and `dmlconf/precision/compare.py`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance, SumErrors
from dmlconf.precision.compare import compare
from dmlconf.tensors.datatypes import Array


def floats(*values: float, dtype: Any = np.float32) -> Array:
    return np.array(values, dtype).reshape(2, 2)


ONES = floats(1, 1, 1, 1)
FIFTIES = floats(50, 50, 50, 50, dtype=np.float16)

OUTPUTS = {
    "interval": (
        ONES,
        floats(1, 2, 2, 0),
        PrecisionRule(RuleKind.INTERVAL, 0, "test"),
        Allowance(interval=(floats(1, 1, 1, 0), floats(1, 2, 1, 1))),
        [True, True, False, True],
    ),
    "one of": (
        ONES,
        floats(1, 2, 1.5, 2),
        PrecisionRule(RuleKind.ONE_OF, 0, "test"),
        Allowance(candidates=[(ONES, ONES), (floats(2, 2, 2, 3), floats(2, 2, 2, 3))]),
        [True, True, False, False],
    ),
    # At 50, a ULP of FLOAT16 is 1/32: 50.03 is one off.
    "sums in FLOAT32": (
        FIFTIES,
        floats(50, 50.03, 51, 50, dtype=np.float16),
        PrecisionRule(RuleKind.ACCUMULATE, 1, "test", 9),
        Allowance(right=FIFTIES, errors=SumErrors(floats(50, 50, 50, 50))),
        [True, True, False, True],
    ),
    # Nine FLOAT16 products may be off by 18 * 2^-11 * 50 = 0.44.
    "sums in FLOAT16": (
        FIFTIES,
        floats(50, 50.2, 60, 50, dtype=np.float16),
        PrecisionRule(RuleKind.ACCUMULATE, 1, "test", 9),
        Allowance(right=FIFTIES, errors=SumErrors(floats(50, 50, 50, 50)), half_precision=True),
        [True, True, False, True],
    ),
    "subnormal inputs": (
        np.array([[3, 3], [3, 3]], np.uint32),
        np.array([[3, 0], [1, 0]], np.uint32),
        PrecisionRule(RuleKind.INTERVAL, 0, "test", flushes=True),
        Allowance(
            interval=(np.full((2, 2), 3, np.uint32),) * 2,
            flushed=(np.full((2, 2), 3, np.uint32), np.array([[3, 0], [0, 2]], np.uint32)),
        ),
        [True, True, False, False],
    ),
}
"""The expected and the actual output, the rule, its allowance, and which elements pass."""


def test_errors_at_some_elements_have_each_field() -> None:
    def numbers(first: float) -> Array:
        return first + floats(0, 1, 2, 3, dtype=np.float64)

    errors = SumErrors(
        sums=numbers(10),
        stored=np.array([7.0]),
        deviation=numbers(20),
        quantum=0.5,
        overflows=np.array([[True, False], [True, True]]),
        others=(numbers(30), numbers(40)),
        terms_vary=True,
        sums_shared=True,
        spans=((numbers(50), numbers(60)), (numbers(70), numbers(80))),
        growth=numbers(90),
        terms_repeat=True,
        by_sign=(numbers(-100), numbers(100)),
    )

    def of_elements_2_and_1(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(of_elements_2_and_1, value))
        if isinstance(value, np.ndarray):
            return np.broadcast_to(value, (2, 2)).ravel()[[2, 1]]
        return value

    part = errors.at(np.array([2, 1]))
    for field in fields(SumErrors):
        expected = of_elements_2_and_1(getattr(errors, field.name))
        np.testing.assert_equal(getattr(part, field.name), expected, field.name)


@pytest.mark.parametrize("name", OUTPUTS)
def test_each_element_alone_is_judged_as_in_the_output(name: str) -> None:
    expected, actual, rule, allowance, passing = OUTPUTS[name]
    whole = compare(actual, expected, rule, allowance)
    assert [difference.coordinates for difference in whole.first] == [
        divmod(number, 2) for number, passes in enumerate(passing) if not passes
    ]
    for number, passes in enumerate(passing):
        index = np.array([number])
        part = compare(actual.ravel()[index], expected.ravel()[index], rule, allowance.at(index))
        assert part.passed is passes, number
