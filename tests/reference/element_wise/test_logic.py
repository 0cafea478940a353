"""Comparisons give what Python gives, every number except 0 is true, and IF keeps every bit.

The tested code is in `dmlconf/reference/element_wise/logic.py` and
`dmlconf/permitted/element_wise/logic.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import DataType
from tests.reference.functions import function_of

COMPARISONS = ["EQUALS", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN", "LESS_THAN_OR_EQUAL"]
SUBNORMAL = 2.0**-149
HALF_SUBNORMAL = 2.0**-24
"""The least positive numbers of FLOAT32 and of FLOAT16."""


def comparisons(a: Any, b: Any, data_type: DataType, part: str = "") -> list[Any]:
    """Return what each comparison gives, or a `part` of what is permitted."""
    actual = []
    for name in COMPARISONS:
        function = function_of(f"ELEMENT_WISE_LOGICAL_{name}", part)
        vectors = [np.array([number], data_type.dtype) for number in (a, b)]
        result = function(*vectors, TensorDesc(DataType.UINT8, (1,)))
        actual.append(tuple(end[0] for end in result) if part else result[0])
    return actual


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_comparisons_of_int64_numbers_agree_with_python(a: int, b: int) -> None:
    assert comparisons(a, b, DataType.INT64) == [a == b, a > b, a >= b, a < b, a <= b]


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
def test_every_comparison_with_nan_is_false_and_zeros_are_equal(data_type: DataType) -> None:
    for other in (np.nan, 1.0, -np.inf):
        assert comparisons(np.nan, other, data_type) == [0, 0, 0, 0, 0]
        assert comparisons(other, np.nan, data_type) == [0, 0, 0, 0, 0]
    assert comparisons(0.0, -0.0, data_type) == [1, 0, 1, 0, 1]


def test_subnormal_float32_numbers_may_count_as_zero() -> None:
    assert comparisons(SUBNORMAL, 0, DataType.FLOAT32) == [0, 1, 1, 0, 0]
    ends = comparisons(SUBNORMAL, 0, DataType.FLOAT32, "interval")
    assert ends == [(0, 1), (0, 1), (1, 1), (0, 0), (0, 1)]


def test_subnormal_float16_numbers_do_not_count_as_zero() -> None:
    ends = comparisons(HALF_SUBNORMAL, 0, DataType.FLOAT16, "interval")
    assert ends == [(0, 0), (1, 1), (1, 1), (0, 0), (0, 0)]


@given(st.integers(0, 255), st.integers(0, 255))
def test_every_number_except_0_is_true(a: int, b: int) -> None:
    desc = TensorDesc(DataType.UINT8, (1,))
    vectors = [np.array([number], np.uint8) for number in (a, b)]
    expected = {"AND": a > 0 and b > 0, "OR": a > 0 or b > 0, "XOR": (a > 0) != (b > 0)}
    for name, truth in expected.items():
        assert reference_function(f"ELEMENT_WISE_LOGICAL_{name}")(*vectors, desc)[0] == truth
    assert reference_function("ELEMENT_WISE_LOGICAL_NOT")(vectors[0], desc)[0] == (a == 0)
    assert reference_function("ELEMENT_WISE_IF")(vectors[0], *vectors, desc)[0] == (a or b)


def test_if_keeps_every_bit_of_the_chosen_number() -> None:
    numbers = np.array([0x7F800001, 0x80000000, 1], np.uint32).view(np.float32)
    condition = np.array([1, 2, 255], np.uint8)
    desc = TensorDesc(DataType.FLOAT32, (3,))
    chosen = reference_function("ELEMENT_WISE_IF")(condition, numbers, -numbers, desc)
    assert chosen.view(np.uint32).tolist() == numbers.view(np.uint32).tolist()
