"""Pooling of empty windows, and LP_POOLING with a P of 0 or with powers that overflow.

The tested code is in `dmlconf/reference/windows/pooling.py` and
`dmlconf/permitted/windows/pooling.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of


def pool(operator: str, values: list[float], window: int, part: str = "", **more: Any) -> Any:
    """Return the result for a row or, given a `part` such as `interval`, what is permitted."""
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
def test_the_mean_of_an_empty_window_is_nan(include: bool) -> None:
    actual = pool("AVERAGE_POOLING", [1, 2], 0, IncludePadding=include)
    assert np.isnan(actual).all()
    assert actual.shape == (1, 1, 1, 3)


def test_the_norm_of_an_empty_window_is_zero() -> None:
    assert pool("LP_POOLING", [1, 2], 0, P=2).ravel().tolist() == [0, 0, 0]


def test_p_of_0_gives_infinity_for_several_elements() -> None:
    assert pool("LP_POOLING", [3, -2, 7], 2, P=0).ravel().tolist() == [math.inf, math.inf]
    ((low, high),) = pool("LP_POOLING", [3, -2, 7], 2, "candidates", P=0)
    assert low.ravel().tolist() == high.ravel().tolist() == [math.inf, math.inf]


@pytest.mark.parametrize(("values", "window"), [([3, 0, 7], 2), ([3, math.inf, 7], 2), ([5], 1)])
def test_p_of_0_permits_any_result_for_some_windows(values: list[float], window: int) -> None:
    ((low, high),) = pool("LP_POOLING", values, window, "candidates", P=0)
    assert (low.ravel() == -math.inf).all()
    assert (high.ravel() == math.inf).all()


def test_overflowing_sum_of_powers_permits_norm_and_infinity() -> None:
    values, expected = [3e20, 4e20], np.full((1, 1, 1, 1), 5e20, np.float32)
    intervals = pool("LP_POOLING", values, 2, "candidates", P=2)
    for actual, right in ((5e20, True), (math.inf, True), (6e20, False), (3e38, False)):
        assert is_permitted(np.full_like(expected, actual), expected, *intervals) == right
