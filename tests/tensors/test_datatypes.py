"""Data types have the sizes and ranges that DirectML.h and NumPy give them.

The tested code is in `dmlconf/tensors/datatypes.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.tensors.datatypes import DataType

BITS = {
    "FLOAT64": 64,
    "FLOAT32": 32,
    "FLOAT16": 16,
    "INT64": 64,
    "INT32": 32,
    "INT16": 16,
    "INT8": 8,
    "INT4": 4,
    "UINT64": 64,
    "UINT32": 32,
    "UINT16": 16,
    "UINT8": 8,
    "UINT4": 4,
}


def test_data_types_are_those_of_the_header_without_unknown() -> None:
    assert sorted(DataType) == sorted(BITS)


@pytest.mark.parametrize("data_type", DataType)
def test_each_data_type_has_its_number_of_bits(data_type: DataType) -> None:
    assert data_type.bits == BITS[data_type]


@pytest.mark.parametrize("data_type", DataType)
def test_numpy_type_has_the_width_and_kind(data_type: DataType) -> None:
    assert data_type.dtype.itemsize == max(1, BITS[data_type] // 8)
    kind = "f" if data_type.is_float else "i" if data_type.is_signed else "u"
    assert data_type.dtype.kind == kind


@pytest.mark.parametrize("data_type", [d for d in DataType if not d.is_float])
def test_the_range_of_an_integer_type_fills_its_bits(data_type: DataType) -> None:
    count = 2 ** BITS[data_type]
    assert int(data_type.maximum) - int(data_type.minimum) == count - 1
    assert (data_type.minimum < 0) == data_type.is_signed


@pytest.mark.parametrize(
    ("data_type", "greatest"),
    [
        (DataType.FLOAT16, 65504.0),
        (DataType.FLOAT32, 2.0**128 - 2.0**104),
        (DataType.FLOAT64, 1.7976931348623157e308),
    ],
)
def test_range_of_a_float_type_has_its_finite_numbers(data_type: DataType, greatest: float) -> None:
    assert data_type.maximum == greatest
    assert data_type.minimum == -greatest
    assert np.isfinite(np.array(greatest, data_type.dtype))
