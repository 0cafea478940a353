"""Quantized products and sums are those of dequantized numbers, quantized again.

The tested code is in `arithmetic.py` and `quotients.py` of `dmlconf/reference/quantization/` and of
`dmlconf/permitted/quantization/`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import elements, function_of

SEEDS = st.integers(0, 10_000)
BYTES = [DataType.INT8, DataType.UINT8]


def evaluate(name: str, *inputs: Any, sizes: Any, output: DataType, part: str = "") -> Any:
    """Return an operator's result or, given a `part` such as `candidates`, what is permitted."""
    return function_of(name, part)(*inputs, OutputTensor=TensorDesc(output, tuple(sizes)))


def scales(random: np.random.Generator, *sizes: int) -> Array:
    return random.uniform(0.1, 2, sizes).astype(np.float32)


@pytest.mark.parametrize("a_type", BYTES)
@pytest.mark.parametrize("b_type", BYTES)
@given(seed=SEEDS)
def test_products_of_8_bit_integers_are_exact(
    a_type: DataType, b_type: DataType, seed: int
) -> None:
    random = np.random.default_rng(seed)
    a, b = elements(random, a_type, 2, 3, 40), elements(random, b_type, 2, 40, 4)
    rows, columns = elements(random, a_type, 3, 1), elements(random, b_type, 1, 4)
    actual = evaluate(
        "MATRIX_MULTIPLY_INTEGER", a, rows, b, columns, sizes=(2, 3, 4), output=DataType.INT32
    )
    expected = np.matmul(a.astype(np.int64) - rows, b.astype(np.int64) - columns)
    assert actual.tolist() == expected.tolist()


@given(seed=SEEDS, output=st.sampled_from(BYTES))
def test_products_agree_with_dequantized_matrices(seed: int, output: DataType) -> None:
    random = np.random.default_rng(seed)
    a, b = elements(random, DataType.UINT8, 3, 9), elements(random, DataType.INT8, 9, 4)
    a_scale, b_scale = scales(random, 3, 1), scales(random, 1, 4)
    a_zero, b_zero = elements(random, DataType.UINT8, 3, 1), elements(random, DataType.INT8, 1, 4)
    # With such scales, many quotients fit a byte.
    scale, zero = scales(random, 3, 1) * 999, elements(random, output, 3, 1)
    inputs = a, a_scale, a_zero, b, b_scale, b_zero, scale, zero
    name = "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    actual = evaluate(name, *inputs, sizes=(3, 4), output=output)
    ((lowest, highest),) = evaluate(name, *inputs, sizes=(3, 4), output=output, part="candidates")
    left = (a.astype(np.float64) - a_zero) * a_scale
    right = (b.astype(np.float64) - b_zero) * b_scale
    exact = np.clip(np.rint(left @ right / scale) + zero, output.minimum, output.maximum)
    assert np.all((lowest <= exact) & (exact <= highest))
    assert np.all((lowest <= actual) & (actual <= highest))
    assert np.all(highest.astype(int) - lowest <= 1)
    floats = evaluate(
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        *inputs[:6],
        None,
        sizes=(3, 4),
        output=DataType.FLOAT32,
    )
    assert np.allclose(floats, left @ right, rtol=1e-6, atol=1e-3)


@given(seed=SEEDS, output=st.sampled_from(BYTES))
def test_quantized_sum_agrees_with_dequantized_tensors(seed: int, output: DataType) -> None:
    random = np.random.default_rng(seed)
    a, b = elements(random, DataType.UINT8, 50), elements(random, DataType.INT8, 50)
    a_zero, b_zero = elements(random, DataType.UINT8, 1), elements(random, DataType.INT8, 1)
    a_scale, b_scale, scale = (scales(random, 1) for _ in range(3))
    inputs = a, a_scale, a_zero, b, b_scale, b_zero, scale, None
    name = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"
    actual = evaluate(name, *inputs, sizes=(50,), output=output)
    ((lowest, highest),) = evaluate(name, *inputs, sizes=(50,), output=output, part="candidates")
    total = (a.astype(np.float64) - a_zero) * a_scale + (b.astype(np.float64) - b_zero) * b_scale
    exact = np.clip(np.rint(total / scale), output.minimum, output.maximum)
    assert np.all((lowest <= exact) & (exact <= highest))
    assert np.all((lowest <= actual) & (actual <= highest))
    assert np.all(highest.astype(int) - lowest <= 1)


WITH_SCALES = pytest.mark.parametrize(
    ("three_scales", "exact"),
    [
        ((0.5, 0.5, 1.0), True),
        ((2.0, 2.0, 8.0), True),
        ((3.0, 1.0, 2.0), False),
        ((1.0, 3.0, 2.0), False),
        ((1.0, 1.0, 6.0), False),
    ],
)
"""The scales of both inputs and of the output, and whether quotients are exact."""


@WITH_SCALES
def test_sums_are_exact_only_for_power_of_two_scales(
    three_scales: tuple[float, float, float], exact: bool
) -> None:
    a, b = np.arange(-20, 20, dtype=np.int8), np.full(40, 3, np.int8)
    a_scale, b_scale, output_scale = (np.array([scale], np.float32) for scale in three_scales)
    inputs = a, a_scale, None, b, b_scale, None, output_scale, None
    name = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"
    ((lowest, highest),) = evaluate(
        name, *inputs, sizes=(40,), output=DataType.INT8, part="candidates"
    )
    quotient = (a.astype(float) * a_scale + 3 * b_scale) / output_scale
    assert (lowest == highest).all() == exact
    assert ((lowest <= np.rint(quotient)) & (np.rint(quotient) <= highest)).all()
    rounded_up = np.floor(quotient + 0.5)
    assert ((lowest <= rounded_up) & (rounded_up <= highest)).all() != exact


@WITH_SCALES
def test_products_are_exact_only_for_power_of_two_scales(
    three_scales: tuple[float, float, float], exact: bool
) -> None:
    a, b = np.arange(-20, 20, dtype=np.int8).reshape(40, 1), np.array([[3]], np.int8)
    a_scale, b_scale, output_scale = (np.array([[scale]], np.float32) for scale in three_scales)
    inputs = a, a_scale, None, b, b_scale, None, output_scale, None
    name = "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    ((lowest, highest),) = evaluate(
        name, *inputs, sizes=(40, 1), output=DataType.INT8, part="candidates"
    )
    quotient = a.astype(float) * 3 * a_scale * b_scale / output_scale
    assert (lowest == highest).all() == exact
    assert ((lowest <= np.rint(quotient)) & (np.rint(quotient) <= highest)).all()
    rounded_away = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
    assert ((lowest <= rounded_away) & (rounded_away <= highest)).all() != exact


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (2**31 - 1, [65504 * 2.0**-10]),
        (-(2**31), [-65504 * 2.0**-10]),
        (65504, []),
        (-65504, []),
    ],
)
def test_integer_beyond_float16_may_count_as_65504(value: int, others: list[float]) -> None:
    number, one = np.array([[value]], np.int32), np.ones((1, 1), np.int32)
    unit, scale = np.ones((1, 1), np.float16), np.array([[2.0**-10]], np.float16)
    inputs = number, unit, None, one, scale, None, None
    name = "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"
    allowed = evaluate(name, *inputs, sizes=(1, 1), output=DataType.FLOAT16, part="error_scale")
    assert {each.item() for each in allowed.others} == {*others}
    assert bool(allowed.overflows.any()) is bool(others)
