"""A number becomes the bytes of a scalar: rounded, truncated or wrapped to its type, or refused.

The tested code is in `dmlconf/tensors/scalar.py`.
"""

from __future__ import annotations

import math

import pytest

from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.scalar import scalar_bytes, scalar_value


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        pytest.param(65520.0, DataType.FLOAT16, id="float beyond FLOAT16"),
        pytest.param(65520, DataType.FLOAT16, id="integer beyond FLOAT16"),
        pytest.param(-65520.0, DataType.FLOAT16, id="negative float beyond FLOAT16"),
        pytest.param(-3.5e38, DataType.FLOAT32, id="negative float beyond FLOAT32"),
        pytest.param(10**39, DataType.FLOAT32, id="integer beyond FLOAT32"),
        pytest.param(10**309, DataType.FLOAT64, id="integer beyond FLOAT64"),
    ],
)
def test_a_number_beyond_a_floating_point_type_is_refused(
    value: float, data_type: DataType
) -> None:
    with pytest.raises(OverflowError):
        scalar_bytes(value, data_type)


@pytest.mark.parametrize(
    ("value", "data_type", "stored"),
    [
        (-65519, DataType.FLOAT16, -65504.0),  # Nearer to -65504 than to -65536.
        (-math.inf, DataType.FLOAT32, -math.inf),
        (-2.7, DataType.INT32, -2),
        (300, DataType.UINT8, 44),
        (-1, DataType.UINT8, 255),
    ],
)
def test_other_numbers_are_rounded_truncated_or_wrapped(
    value: float, data_type: DataType, stored: float
) -> None:
    content = scalar_bytes(value, data_type)
    assert scalar_value(content, data_type) == stored
    size = data_type.bits // 8
    assert content[size:] == bytes(8 - size)


@pytest.mark.parametrize(
    ("value", "error"),
    [(math.nan, ValueError), (math.inf, OverflowError), (-math.inf, OverflowError)],
)
def test_nan_and_infinity_are_refused_for_an_integer_type(
    value: float, error: type[Exception]
) -> None:
    with pytest.raises(error):
        scalar_bytes(value, DataType.INT32)


def test_number_without_a_data_type_has_zero_bytes() -> None:
    assert scalar_bytes(1.5, "UNKNOWN") == bytes(8)
