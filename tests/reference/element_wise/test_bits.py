"""Bit operators treat each data type as plain bits.

The tested code is in `dmlconf/reference/element_wise/bits.py` and
`dmlconf/permitted/element_wise/bits.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import DataType
from tests.reference.functions import function_of

TYPES = [data_type for data_type in DataType if data_type.bits > 4]
UNSIGNED = [DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64]


def evaluate(name: str, data_type: DataType, *inputs: Any, part: str = "") -> Any:
    """Return the result, or a `part` of what is permitted."""
    return function_of(f"ELEMENT_WISE_BIT_{name}", part)(
        *inputs, OutputTensor=TensorDesc(data_type, inputs[0].shape)
    )


def elements(data_type: DataType, *bits: int) -> Any:
    return np.array(bits, f"u{data_type.bits // 8}").view(data_type.dtype)


# Each example is for all data types, since making it takes longer than a check.
@given(st.data())
def test_bits_of_every_data_type_are_combined_and_counted(data: st.DataObject) -> None:
    for data_type in TYPES:
        mask = 2**data_type.bits - 1
        a, b = (data.draw(st.integers(0, mask), data_type) for _ in range(2))
        inputs = elements(data_type, a), elements(data_type, b)
        for name, bits in (("AND", a & b), ("OR", a | b), ("XOR", a ^ b)):
            actual = evaluate(name, data_type, *inputs)
            assert actual.dtype == data_type.dtype
            assert actual.tobytes() == elements(data_type, bits).tobytes(), (name, data_type)
        inverted = evaluate("NOT", data_type, inputs[0])
        assert inverted.tobytes() == elements(data_type, a ^ mask).tobytes(), data_type
        counts = evaluate("COUNT", DataType.UINT8, inputs[0])
        assert counts.tolist() == [a.bit_count()], data_type


def test_bits_of_strided_tensors_are_counted_in_order() -> None:
    tensor = np.arange(12, dtype=np.uint32).reshape(3, 4).T
    counts = evaluate("COUNT", DataType.UINT32, tensor)
    assert counts.tolist() == [[number.bit_count() for number in row] for row in tensor.tolist()]


@given(st.data())
def test_bits_that_are_shifted_out_of_the_type_are_lost(data: st.DataObject) -> None:
    for data_type in UNSIGNED:
        mask = 2**data_type.bits - 1
        value = data.draw(st.integers(0, mask), data_type)
        shift = data.draw(st.integers(0, data_type.bits - 1), "shift")
        inputs = elements(data_type, value), elements(data_type, shift)
        for name, bits in (("SHIFT_LEFT", value << shift & mask), ("SHIFT_RIGHT", value >> shift)):
            assert evaluate(name, data_type, *inputs).tolist() == [bits], (name, data_type)
            lowest, highest = evaluate(name, data_type, *inputs, part="interval")
            assert [lowest[0], highest[0]] == [bits, bits], (name, data_type)


@pytest.mark.parametrize("name", ["SHIFT_LEFT", "SHIFT_RIGHT"])
@pytest.mark.parametrize("data_type", UNSIGNED)
def test_shift_by_all_bits_is_defined_only_for_uint32(name: str, data_type: DataType) -> None:
    inputs = elements(data_type, 200), elements(data_type, data_type.bits)
    lowest, highest = evaluate(name, data_type, *inputs, part="interval")
    is_open = data_type is not DataType.UINT32
    assert [lowest[0], highest[0]] == ([0, data_type.maximum] if is_open else [200, 200])
