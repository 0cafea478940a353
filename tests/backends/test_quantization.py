"""Quantization: what its formulas have in common, and what rules permit beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.backends.numpy.backend import reference_function
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType

BYTES = [DataType.INT8, DataType.UINT8]
INTEGERS = [*BYTES, DataType.INT4, DataType.UINT4]
FLOATS = [DataType.FLOAT32, DataType.FLOAT16]
SCALES = st.floats(0.125, 8, width=16)


def evaluate(name: str, *inputs: Any, output: DataType, part: str = "") -> Any:
    sizes = next(item.shape for item in inputs if item is not None)
    return reference_function(name, part)(*inputs, OutputTensor=TensorDesc(output, sizes))


def quantize(values: Array, *tensors: Array, output: DataType) -> Array:
    kind = "SCALE_ZERO_POINT" if len(tensors) == 2 else "SCALE"
    found: Array = evaluate("QUANTIZE", values, kind, list(tensors), output=output)
    return found


@pytest.mark.parametrize("integer", BYTES)
@pytest.mark.parametrize("floating", FLOATS)
@given(data=st.data())
def test_what_is_quantized_again_is_the_same(
    integer: DataType, floating: DataType, data: st.DataObject
) -> None:
    elements = st.integers(int(integer.minimum), int(integer.maximum))
    values, zero_point = (
        np.array(data.draw(st.lists(elements, min_size=4, max_size=4)), integer.dtype)
        for _ in range(2)
    )
    scale = np.full(4, 2.0 ** data.draw(st.integers(-4, 4)), floating.dtype)
    number = evaluate("ELEMENT_WISE_DEQUANTIZE_LINEAR", values, scale, zero_point, output=floating)
    again = evaluate("ELEMENT_WISE_QUANTIZE_LINEAR", number, scale, zero_point, output=integer)
    assert again.tolist() == values.tolist()


@pytest.mark.parametrize("integer", INTEGERS)
@given(seed=st.integers(0, 99), blocks=st.sampled_from([(1, 1), (4, 1), (2, 3), (1, 6), (4, 6)]))
def test_each_block_has_its_scale_and_zero_point(
    integer: DataType, seed: int, blocks: tuple[int, int]
) -> None:
    random = np.random.default_rng(seed)
    values = random.uniform(-40, 40, (4, 6)).astype(np.float32)
    scale = random.uniform(0.5, 2, blocks).astype(np.float32)
    zero_point = random.integers(0, 7, blocks).astype(integer.dtype)
    found = quantize(values, scale, zero_point, output=integer)
    rows, columns = 4 // blocks[0], 6 // blocks[1]
    for row in range(blocks[0]):
        for column in range(blocks[1]):
            place = np.s_[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]
            one = scale[row, column].reshape(1, 1), zero_point[row, column].reshape(1, 1)
            assert found[place].tolist() == quantize(values[place], *one, output=integer).tolist()


@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9))
def test_the_range_that_is_found_holds_0_and_all_numbers(values: list[float]) -> None:
    numbers = np.array(values, np.float32)
    for integer in BYTES:
        one = TensorDesc(integer, (1,))
        found, scale, zero_point = reference_function("DYNAMIC_QUANTIZE_LINEAR")(
            numbers, TensorDesc(integer, numbers.shape), TensorDesc(DataType.FLOAT32, (1,)), one
        )
        near = (found.astype(np.float64) - zero_point) * scale
        assert np.all(np.abs(near - numbers) <= 1.01 * scale)


@pytest.mark.parametrize("name", ["ELEMENT_WISE_QUANTIZE_LINEAR", "ELEMENT_WISE_DEQUANTIZE_LINEAR"])
@given(seed=st.integers(0, 999))
def test_right_results_lie_within_the_interval(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    scale = random.uniform(0.1, 3, 50).astype(np.float32)
    zero_point = random.integers(0, 255, 50).astype(np.uint8)
    if name == "ELEMENT_WISE_QUANTIZE_LINEAR":
        values, output = random.uniform(-300, 300, 50).astype(np.float32), DataType.UINT8
    else:
        values, output = random.integers(0, 255, 50).astype(np.uint8), DataType.FLOAT32
    inputs = values, scale, zero_point
    right = evaluate(name, *inputs, output=output)
    lowest, highest = evaluate(name, *inputs, output=output, part="interval")
    assert np.all((lowest <= right) & (right <= highest))


def test_a_quotient_next_to_a_half_may_be_rounded_either_way() -> None:
    values = np.array([2.5, 2.4999999, 2.4, 3.5], np.float32)
    scale = np.ones(4, np.float32)
    lowest, highest = evaluate(
        "ELEMENT_WISE_QUANTIZE_LINEAR", values, scale, None, output=DataType.INT8, part="interval"
    )
    assert lowest.tolist() == [2, 2, 2, 3]
    assert highest.tolist() == [3, 3, 2, 4]
