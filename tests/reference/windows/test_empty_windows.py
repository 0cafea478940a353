"""Means of no elements are NaN, norms 0; with a P of 0, LP_POOLING gives infinity or anything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of


def pooled(operator: str, values: list[float], window: int, part: str = "", **more: Any) -> Any:
    """Return an operator's result for a row; given a `part` such as `interval`, this allowance."""
    positions = len(values) - window + 1
    return function_of(operator, part)(
        InputTensor=np.array(values, np.float32).reshape(1, 1, 1, -1),
        OutputTensor=TensorDesc(DataType.FLOAT32, (1, 1, 1, positions)),
        Strides=(1, 1),
        WindowSize=(1, window),
        StartPadding=(0, 0),
        EndPadding=(0, 0),
        **more,
    )


@pytest.mark.parametrize("include", [True, False])
def test_the_mean_of_nothing_is_nan(include: bool) -> None:
    actual = pooled("AVERAGE_POOLING", [1, 2], 0, IncludePadding=include)
    assert np.isnan(actual).all()
    assert actual.shape == (1, 1, 1, 3)


def test_the_root_of_nothing_is_zero() -> None:
    assert pooled("LP_POOLING", [1, 2], 0, P=2).ravel().tolist() == [0, 0, 0]


def test_with_a_p_of_0_several_elements_give_infinity() -> None:
    assert pooled("LP_POOLING", [3, -2, 7], 2, P=0).ravel().tolist() == [math.inf, math.inf]
    ((low, high),) = pooled("LP_POOLING", [3, -2, 7], 2, "candidates", P=0)
    assert low.ravel().tolist() == high.ravel().tolist() == [math.inf, math.inf]


@pytest.mark.parametrize(("values", "window"), [([3, 0, 7], 2), ([3, math.inf, 7], 2), ([5], 1)])
def test_with_a_p_of_0_any_result_is_right_where_0_meets_infinity(
    values: list[float], window: int
) -> None:
    ((low, high),) = pooled("LP_POOLING", values, window, "candidates", P=0)
    assert (low.ravel() == -math.inf).all()
    assert (high.ravel() == math.inf).all()


def test_a_sum_of_powers_that_overflows_makes_the_root_or_infinity_and_nothing_between() -> None:
    values, expected = [3e20, 4e20], np.full((1, 1, 1, 1), 5e20, np.float32)
    intervals = pooled("LP_POOLING", values, 2, "candidates", P=2)
    for actual, right in ((5e20, True), (math.inf, True), (6e20, False), (3e38, False)):
        assert is_permitted(np.full_like(expected, actual), expected, *intervals) == right
