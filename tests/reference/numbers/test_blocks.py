"""The reference computes large tensors in blocks or slices, with the same results as all at once.

A block is 32,768 elements in row-major order. A slice has all elements along some axes.

The tested code is in `dmlconf/reference/numbers/blocks.py`, and where operators use blocks: in
`dmlconf/reference/element_wise/logic.py`, `dmlconf/reference/element_wise/unary.py` and
`dmlconf/reference/quantization/linear.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.reference.numbers.blocks import in_slices
from dmlconf.tensors.datatypes import Array, DataType

SIZES = (3, 50001)
"""Sizes of a tensor of several blocks."""

RANDOM = np.random.default_rng(3)
X, Y = (RANDOM.uniform(-300, 300, SIZES).astype(np.float32) for _ in range(2))
SCALE = np.full(SIZES, 1.5, np.float32)
ZERO = np.full(SIZES, 7, np.int8)
CONDITION = RANDOM.integers(0, 3, SIZES, np.uint8)

CALLS: dict[str, tuple[str, list[Array], DataType]] = {
    "quantization": ("ELEMENT_WISE_QUANTIZE_LINEAR", [X, SCALE, ZERO], DataType.INT8),
    "choice": ("ELEMENT_WISE_IF", [CONDITION, X, Y], DataType.FLOAT32),
    "sign": ("ELEMENT_WISE_SIGN", [X], DataType.FLOAT32),
}
"""The operator, its input tensors, and the type of its output."""

EXPECTED: dict[str, Callable[[], Array]] = {
    "quantization": lambda: np.clip(np.rint(X / SCALE) + 7, -128, 127).astype(np.int8),
    "choice": lambda: np.where(CONDITION > 0, X, Y),
    "sign": lambda: np.sign(X),
}


def evaluate(operator: str, tensors: list[Array], output: DataType) -> Any:
    return reference_function(operator)(*tensors, OutputTensor=TensorDesc(output, SIZES))


@pytest.mark.parametrize("name", CALLS)
def test_large_tensors_have_the_results_of_whole_tensors(name: str) -> None:
    actual = evaluate(*CALLS[name])
    assert actual.shape == SIZES
    np.testing.assert_array_equal(actual, EXPECTED[name]())


def test_a_broadcast_element_is_used_in_every_block() -> None:
    operator, (x, scale, zero), output = CALLS["quantization"]
    repeated = [np.broadcast_to(tensor[:1, :1], SIZES) for tensor in (scale, zero)]
    actual = evaluate(operator, [x, *repeated], output)
    np.testing.assert_array_equal(actual, evaluate(operator, [x, scale, zero], output))
    actual = evaluate(operator, [np.broadcast_to(x[:1, :1], SIZES), scale, zero], output)
    np.testing.assert_array_equal(actual, np.full(SIZES, EXPECTED["quantization"]()[0, 0]))
    repeated = [np.broadcast_to(tensor[:1, :1], SIZES) for tensor in (x, scale)]
    actual = evaluate(operator, [*repeated, zero], output)
    np.testing.assert_array_equal(actual, np.full(SIZES, EXPECTED["quantization"]()[0, 0]))


def test_slices_of_tensors_have_the_results_of_whole_tensors() -> None:
    """60,000 elements make three slices along the axis of size 5."""
    x, offset = (RANDOM.uniform(-9, 9, (1, n, 3, 4000)).astype(np.float32) for n in (5, 1))
    factor = np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1)
    lengths = []

    def less_the_greatest(x: Array, factor: Array, offset: Array, absent: None) -> Array:
        lengths.append(x.shape[1])
        result: Array = x * factor + offset - x.max(-1, keepdims=True)
        return result

    tensors = x, factor, offset, None
    actual = in_slices(less_the_greatest, *tensors, dtype=x.dtype, together=(-1,))
    assert lengths == [2, 2, 1]
    np.testing.assert_array_equal(actual, less_the_greatest(*tensors))


@pytest.mark.parametrize("together", [(0,), (1,), (-2,), (0, 1)])
def test_a_slice_has_all_elements_along_the_axes_together(together: tuple[int, ...]) -> None:
    greatest = in_slices(
        lambda x: x.max(together, keepdims=True), X, dtype=X.dtype, together=together
    )
    np.testing.assert_array_equal(greatest, X.max(together, keepdims=True))
