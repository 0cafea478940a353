"""Quantization undoes dequantization, uses each block's scale, and permits several roundings.

The tested code is in `linear.py` and `quotients.py` of `dmlconf/reference/quantization/` and of
`dmlconf/permitted/quantization/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of
from tests.truncation import toward_zero

BYTES = [DataType.INT8, DataType.UINT8]
INTEGERS = [*BYTES, DataType.INT4, DataType.UINT4]
FLOATS = [DataType.FLOAT32, DataType.FLOAT16]
SCALES = st.floats(0.125, 8, width=16)


def evaluate(name: str, *inputs: Any, output: DataType, part: str = "") -> Any:
    """Return an operator's result or, given a `part` such as `candidates`, what is permitted."""
    sizes = next(item.shape for item in inputs if item is not None)
    return function_of(name, part)(*inputs, OutputTensor=TensorDesc(output, sizes))


def quantize(values: Array, *tensors: Array, output: DataType) -> Array:
    kind = "SCALE_ZERO_POINT" if len(tensors) == 2 else "SCALE"
    result: Array = evaluate("QUANTIZE", values, kind, list(tensors), output=output)
    return result


@pytest.mark.parametrize("integer", BYTES)
@pytest.mark.parametrize("floating", FLOATS)
@given(data=st.data())
def test_quantization_undoes_dequantization(
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
def test_each_block_has_its_own_scale_and_zero_point(
    integer: DataType, seed: int, blocks: tuple[int, int]
) -> None:
    random = np.random.default_rng(seed)
    values = random.uniform(-40, 40, (4, 6)).astype(np.float32)
    scale = random.uniform(0.5, 2, blocks).astype(np.float32)
    zero_point = random.integers(0, 7, blocks).astype(integer.dtype)
    actual = quantize(values, scale, zero_point, output=integer)
    rows, columns = 4 // blocks[0], 6 // blocks[1]
    for row in range(blocks[0]):
        for column in range(blocks[1]):
            block = np.s_[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]
            one = scale[row, column].reshape(1, 1), zero_point[row, column].reshape(1, 1)
            assert actual[block].tolist() == quantize(values[block], *one, output=integer).tolist()


@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9))
@example(values=[1.401298464324817e-45])
@example(values=[1e-42, -2e-43])
def test_dynamic_quantization_is_off_by_at_most_one_scale(values: list[float]) -> None:
    """Rounding the quotient and rounding the zero point may each add half of a scale."""
    numbers = np.array(values, np.float32)
    for integer in BYTES:
        one = TensorDesc(integer, (1,))
        actual, scale, zero_point = reference_function("DYNAMIC_QUANTIZE_LINEAR")(
            numbers, TensorDesc(integer, numbers.shape), TensorDesc(DataType.FLOAT32, (1,)), one
        )
        near = (actual.astype(np.float64) - zero_point) * scale
        # A subnormal scale is rounded to a multiple of 2^-149.
        rounding = 255 * 2.0**-150
        assert np.all(np.abs(near - numbers) <= 1.01 * scale.astype(np.float64) + rounding)


def permitted_elements(name: str, *inputs: Any, actual: Any, output: DataType) -> list[bool]:
    right = evaluate(name, *inputs, output=output)
    candidates = evaluate(name, *inputs, output=output, part="candidates")
    result: list[bool] = is_permitted(np.array(actual, output.dtype), right, *candidates).tolist()
    return result


@given(seed=st.integers(0, 999))
def test_quotient_may_be_a_product_with_the_reciprocal(seed: int) -> None:
    random = np.random.default_rng(seed)
    scale = random.uniform(0.1, 3, 50).astype(np.float32)
    zero_point = random.integers(0, 255, 50).astype(np.uint8)
    values = random.uniform(-300, 300, 50).astype(np.float32)
    inputs, output = (values, scale, zero_point), DataType.UINT8
    quotients = values / scale, values * (1 / scale)
    for quotient in quotients:
        driver = np.clip(np.rint(quotient) + zero_point, 0, 255)
        assert all(
            permitted_elements(
                "ELEMENT_WISE_QUANTIZE_LINEAR", *inputs, actual=driver, output=output
            )
        )


@given(seed=st.integers(0, 999))
def test_dequantized_product_is_rounded_to_nearest_or_toward_zero(seed: int) -> None:
    random = np.random.default_rng(seed)
    scale = random.uniform(0.1, 3, 50).astype(np.float32)
    values, zero_point = (random.integers(0, 255, 50).astype(np.uint8) for _ in range(2))
    operator = "ELEMENT_WISE_DEQUANTIZE_LINEAR", values, scale, zero_point
    ends = evaluate(*operator, output=DataType.FLOAT32, part="interval")
    exact = (values.astype(np.float64) - zero_point) * scale
    nearest = exact.astype(np.float32)
    np.testing.assert_array_equal(ends, np.sort((nearest, toward_zero(exact, np.float32)), 0))
    np.testing.assert_array_equal(evaluate(*operator, output=DataType.FLOAT32), nearest)


HALVES = np.array([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5], np.float32)

WRONG_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "halves away from 0": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "halves up": lambda x: np.floor(x + 0.5),
    "halves down": lambda x: np.ceil(x - 0.5),
    "all down": np.floor,
    "all toward 0": np.trunc,
}


@pytest.mark.parametrize("scale", [0.25, 1.0, 8.0])
@pytest.mark.parametrize("rounding", WRONG_ROUNDINGS)
def test_exact_quotients_halfway_are_rounded_to_even(rounding: str, scale: float) -> None:
    scales = np.full(8, scale, np.float32)
    driver, right = WRONG_ROUNDINGS[rounding](HALVES), np.rint(HALVES)
    for name, tensors in (
        ("ELEMENT_WISE_QUANTIZE_LINEAR", (scales, None)),
        ("QUANTIZE", ("SCALE", [scales])),
    ):
        inputs = HALVES * np.float32(scale), *tensors
        actual = permitted_elements(name, *inputs, actual=driver, output=DataType.INT8)
        assert actual == (driver == right).tolist()
        assert all(permitted_elements(name, *inputs, actual=right, output=DataType.INT8))


def test_an_odd_zero_point_is_added_after_rounding() -> None:
    scales, zeros = np.ones(8, np.float32), np.ones(8, np.int8)
    inputs = "ELEMENT_WISE_QUANTIZE_LINEAR", HALVES, scales, zeros
    assert all(permitted_elements(*inputs, actual=np.rint(HALVES) + 1, output=DataType.INT8))
    assert not any(permitted_elements(*inputs, actual=np.rint(HALVES + 1), output=DataType.INT8))


def test_halfway_quotient_by_3_may_be_rounded_either_way() -> None:
    values = np.array([7.5, 7.5, 7.4, 10.5, 10.5], np.float32)
    inputs = "ELEMENT_WISE_QUANTIZE_LINEAR", values, np.full(5, 3, np.float32), None
    actual = permitted_elements(*inputs, actual=[2, 3, 3, 3, 4], output=DataType.INT8)
    assert actual == [True, True, False, True, True]


def test_nan_becomes_minimum_or_zero_or_zero_point() -> None:
    values, scale = np.full(5, np.nan, np.float32), np.ones(5, np.float32)
    inputs = "ELEMENT_WISE_QUANTIZE_LINEAR", values, scale, np.full(5, 7, np.int8)
    actual = permitted_elements(*inputs, actual=[-128, 0, 7, -50, 127], output=DataType.INT8)
    assert actual == [True, True, True, False, False]


def dynamic(values: Array, part: str = "") -> Any:
    tensors = DataType.UINT8, DataType.FLOAT32, DataType.UINT8
    sizes = values.shape, (1,), (1,)
    outputs = [TensorDesc(*output) for output in zip(tensors, sizes, strict=True)]
    return function_of("DYNAMIC_QUANTIZE_LINEAR", part)(values, *outputs)


@pytest.mark.parametrize("rounding", WRONG_ROUNDINGS)
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_range_of_255_times_power_of_two_is_exact(rounding: str, scale: float) -> None:
    quotients = np.array([-10, 245, -3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5], np.float32)
    values = quotients * np.float32(scale)
    right, found_scale, zero_point = dynamic(values)
    outputs, scales, zero_points = dynamic(values, "candidates")
    assert found_scale == scale
    assert zero_point == 10
    assert scales == [(scale, scale)]
    assert zero_points == [(10, 10)]
    driver = (WRONG_ROUNDINGS[rounding](quotients) + 10).astype(np.uint8)
    exact = driver == np.rint(quotients) + 10
    assert is_permitted(driver, right, *outputs).tolist() == exact.tolist()
    # A product with the reciprocal of 255 gives the same scale.
    reciprocal = np.float32(255 * scale) * np.float32(1 / 255)
    assert reciprocal == scale


def test_scale_of_overflowing_range_is_finite_or_infinite() -> None:
    largest = float(np.finfo(np.float32).max)
    values = np.array([-largest, largest], np.float32)
    _, scales, _ = dynamic(values, "candidates")
    _, right, _ = dynamic(values)
    for value, is_right in ((largest / 255 * 2, True), (np.inf, True), (1e37, False)):
        driver = np.array([value], np.float32)
        assert is_permitted(driver, right, *scales).all() == is_right


NORMAL = np.array([0, 1, 1 / 2, 1 / 3, 1 / 64], np.float32) * np.float32(2.0**-120)
SUBNORMAL = np.array([-100, 155, 50, -20], np.float32) * np.float32(1000 * 2.0**-149)
"""The range of either, divided by 255, is a subnormal scale."""


@pytest.mark.parametrize(
    ("values", "driver", "expected"),
    [
        (NORMAL, [0, 255, 128, 85, 4], [True] * 5),  # measured on DirectML 1.9.0 and 1.15.4
        (NORMAL, [0, 255, 255, 255, 255], [True] * 5),  # the scale counts as 0
        (NORMAL, [0, 255, 140, 80, 9], [True, True, False, False, False]),
        (SUBNORMAL, [0, 255, 255, 0], [True] * 4),  # measured on DirectML 1.9.0 and 1.15.4
        (SUBNORMAL, [0, 255, 150, 80], [True] * 4),  # the page's formula
        (SUBNORMAL, [0, 0, 0, 0], [True] * 4),  # all inputs count as 0
        (SUBNORMAL, [9, 200, 90, 130], [False] * 4),
    ],
)
def test_subnormal_scale_counts_as_itself_or_zero(
    values: Array, driver: list[int], expected: list[bool]
) -> None:
    right, *_ = dynamic(values)
    outputs, *_ = dynamic(values, "candidates")
    assert is_permitted(np.array(driver, np.uint8), right, *outputs).tolist() == expected


@pytest.mark.parametrize(("values", "zero_points"), [(NORMAL, {0}), (SUBNORMAL, {0, 100, 255})])
def test_only_subnormal_inputs_permit_three_zero_points(
    values: Array, zero_points: set[int]
) -> None:
    _, _, right = dynamic(values)
    _, _, candidates = dynamic(values, "candidates")
    for value in range(256):
        driver = np.array([value], np.uint8)
        assert bool(is_permitted(driver, right, *candidates).all()) == (value in zero_points)
