"""A number beyond a floating-point type is refused as one error, written as an integer or not.

The tested code is in `dmlconf/tensors/scalar.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.scalar import scalar_bytes


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        pytest.param(65520.0, DataType.FLOAT16, id="float beyond FLOAT16"),
        pytest.param(65520, DataType.FLOAT16, id="integer beyond FLOAT16"),
        pytest.param(10**39, DataType.FLOAT32, id="integer beyond FLOAT32"),
        pytest.param(10**309, DataType.FLOAT64, id="integer beyond FLOAT64"),
    ],
)
def test_a_number_beyond_a_floating_point_type_overflows(value: float, data_type: DataType) -> None:
    with pytest.raises(OverflowError):
        scalar_bytes(value, data_type)
