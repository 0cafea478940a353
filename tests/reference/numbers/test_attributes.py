"""Attributes that a data type cannot hold, such as 300 in UINT8, become what DirectML stores.

The tested code is in `dmlconf/reference/numbers/attributes.py` and
`dmlconf/permitted/numbers/attributes.py`.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.attributes import possible_conversions
from dmlconf.reference.evaluation import reference_function
from dmlconf.reference.numbers.attributes import converted
from dmlconf.tensors.datatypes import DataType

INTEGERS = [data_type for data_type in DataType if data_type.bits >= 8 and not data_type.is_float]

MEASURED = {
    ("INT8", 300.5): 44,
    ("UINT8", -300.5): 212,
    ("INT16", math.inf): 0,
    ("INT32", math.nan): -(2**31),
    ("INT32", 1e10): -(2**31),
    ("UINT32", -1e10): 2884901888,
    ("UINT32", math.inf): 0,
    ("INT64", 1e25): -(2**63),
    ("UINT64", math.inf): 2**63,
    ("UINT64", -300.5): 2**64 - 300,
}
"""What DirectML 1.15.4, 1.13.1 and 1.8.0 store on x86-64."""


@pytest.mark.parametrize(("data_type", "value"), MEASURED)
def test_number_that_does_not_fit_becomes_what_directml_stores(
    data_type: str, value: float
) -> None:
    kind = DataType(data_type)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = reference_function("DIAGONAL_MATRIX")(TensorDesc(kind, (1, 1)), 0, value)
    assert output.tolist() == [[MEASURED[data_type, value]]]


@pytest.mark.parametrize("data_type", INTEGERS)
@given(value=st.floats(width=32))
def test_value_that_the_type_holds_has_one_conversion(data_type: DataType, value: float) -> None:
    choices = [int(choice) for choice in possible_conversions(value, "FLOAT32", data_type.dtype)]
    assert choices[0] == int(converted(value, "FLOAT32", data_type.dtype))
    if math.isfinite(value) and data_type.minimum <= math.trunc(value) <= data_type.maximum:
        assert choices == [math.trunc(value)]


def test_conversions_of_arm64_are_permitted() -> None:
    """Arm64 gives 0 for NaN, and the nearest integer for other numbers."""
    for value, right in ((math.nan, 0), (math.inf, 2**31 - 1), (-1e10, -(2**31))):
        choices = possible_conversions(value, "FLOAT32", np.dtype(np.int32))
        assert right in map(int, choices)
    assert 7 not in map(int, possible_conversions(math.nan, "FLOAT32", np.dtype(np.int32)))
