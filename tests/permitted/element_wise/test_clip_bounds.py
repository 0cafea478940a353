"""CLIP, CLIP_GRAD and THRESHOLD of integers convert a bound of NaN to an integer.

Processors convert NaN to 0, 2^63 or 2^64 - 1 in UINT64, and each of them is right.

The tested code is in `dmlconf/permitted/element_wise/clipping.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.allowance import Interval
from dmlconf.tensors.datatypes import DataType
from tests.permitted.intervals import hull, is_permitted
from tests.reference.functions import function_of

NAN = math.nan
VALUES = [0, 3, 6, 100]


def fields_of(
    operator: str, data_type: DataType, least: float, greatest: float
) -> Mapping[str, Any]:
    """Return an operator's fields for VALUES; gradients are VALUES + 1."""
    values = np.array(VALUES, data_type.dtype)
    desc = TensorDesc(data_type, (len(VALUES),))
    fields: dict[str, Any] = {"InputTensor": values, "Min": least, "Max": greatest}
    if operator.endswith("1"):
        fields["MinMaxDataType"] = "FLOAT32"
    if "GRAD" in operator:
        fields |= {"InputGradientTensor": values + 1, "OutputGradientTensor": desc}
    else:
        fields |= {"OutputTensor": desc, "ScaleBias": None}
    return fields


def right_range(operator: str, data_type: DataType, least: float, greatest: float) -> Interval:
    fields = fields_of(operator, data_type, least, greatest)
    return hull(function_of(operator, "candidates")(**fields))


CLIPS = ["ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1"]
GRADIENTS = ["ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1"]


@pytest.mark.parametrize("operator", CLIPS)
@pytest.mark.parametrize("converted", [0, 2**63, 2**64 - 1])
def test_each_conversion_of_nan_is_a_right_bound(operator: str, converted: int) -> None:
    for least, greatest, clipped in (
        (NAN, 2**40, [max(converted, value) for value in VALUES]),
        (1, NAN, [max(1, min(value, converted)) for value in VALUES]),
    ):
        actual = np.array(clipped, np.uint64)
        fields = fields_of(operator, DataType.UINT64, least, greatest)
        intervals = function_of(operator, "candidates")(**fields)
        # The intervals need not have the result of the reference, which is always permitted.
        assert is_permitted(actual, function_of(operator)(**fields), *intervals).all()


@pytest.mark.parametrize("operator", CLIPS)
def test_bounds_that_are_numbers_leave_one_right_result(operator: str) -> None:
    low, high = right_range(operator, DataType.UINT64, 1, 5)
    assert low.tolist() == high.tolist() == [1, 3, 5, 5]


@pytest.mark.parametrize("operator", CLIPS)
def test_a_min_of_nan_may_count_as_255_only_in_uint8(
    operator: str,
) -> None:
    low, high = right_range(operator, DataType.INT32, NAN, 5)
    assert low.tolist() == high.tolist() == [0, 3, 5, 5]
    low, high = right_range(operator, DataType.UINT8, NAN, 5)
    assert (low.tolist(), high.tolist()) == ([0, 3, 5, 5], [255] * 4)


@pytest.mark.parametrize("operator", GRADIENTS)
def test_gradients_with_a_bound_of_nan_may_be_kept_or_dropped(operator: str) -> None:
    low, high = right_range(operator, DataType.UINT64, NAN, 50)
    assert (low.tolist(), high.tolist()) == ([0, 0, 0, 0], [0, 4, 7, 0])
    low, high = right_range(operator, DataType.UINT64, 1, NAN)
    assert (low.tolist(), high.tolist()) == ([0, 0, 0, 0], [0, 4, 7, 101])
    low, high = right_range(operator, DataType.UINT64, 1, 50)
    assert low.tolist() == high.tolist() == [0, 4, 7, 0]


@pytest.mark.parametrize("operator", CLIPS)
def test_a_result_between_those_of_two_processors_is_wrong(operator: str) -> None:
    desc = TensorDesc(DataType.UINT64, (1,))
    fields: dict[str, Any] = {"OutputTensor": desc, "ScaleBias": None, "Min": NAN, "Max": 2**40}
    if operator.endswith("1"):
        fields["MinMaxDataType"] = "FLOAT32"
    values = np.array([6], np.uint64)
    intervals = function_of(operator, "candidates")(InputTensor=values, **fields)
    right = np.array([2**63], np.uint64)
    for value in (6, 2**63, 2**64 - 1, 2**50, 7):
        result = np.array([value], np.uint64)
        permitted = value not in (2**50, 7)
        assert is_permitted(result, right, *intervals).all() == permitted, value


def test_a_threshold_of_nan_may_count_as_255_only_in_uint8() -> None:
    function = function_of("ELEMENT_WISE_THRESHOLD", "candidates")
    for data_type, highest in ((DataType.INT32, VALUES), (DataType.UINT8, [255] * 4)):
        values, desc = np.array(VALUES, data_type.dtype), TensorDesc(data_type, (4,))
        low, high = hull(function(InputTensor=values, OutputTensor=desc, ScaleBias=None, Min=NAN))
        assert (low.tolist(), high.tolist()) == (VALUES, highest)
