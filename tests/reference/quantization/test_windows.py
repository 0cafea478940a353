"""Convolutions and means of quantized numbers agree with loops over the elements in each window.

The tested code is in `dmlconf/reference/quantization/windows.py` and
`dmlconf/permitted/quantization/windows.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import DataType
from tests.properties import examples
from tests.reference.functions import elements, function_of

SEEDS = st.integers(0, 10_000)
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
PADDINGS = st.tuples(st.integers(0, 2), st.integers(0, 2))


def elements_in_window(
    tensor: Any, position: Any, kernel: Any, strides: Any, dilations: Any, start: Any
) -> Any:
    """Yield kernel index and value of each element in the window at `position`, no padding."""
    for row, column in np.ndindex(*kernel):
        y = position[0] * strides[0] - start[0] + row * dilations[0]
        x = position[1] * strides[1] - start[1] + column * dilations[1]
        if 0 <= y < tensor.shape[0] and 0 <= x < tensor.shape[1]:
            yield (row, column), tensor[y, x]


def convolution(
    values: Any, filter_: Any, sizes: Any, strides: Any, dilations: Any, start: Any
) -> Any:
    """Return the sums of products in each window; a group has two input and two output channels."""
    sums = np.zeros(sizes, np.int64)
    for batch, output, row, column in np.ndindex(*sizes):
        for channel in range(2):
            tensor, weights = values[batch, output // 2 * 2 + channel], filter_[output, channel]
            for at, value in elements_in_window(
                tensor, (row, column), weights.shape, strides, dilations, start
            ):
                sums[batch, output, row, column] += value * weights[at]
    return sums


@settings(max_examples=examples(15))
@given(seed=SEEDS, strides=PAIRS, dilations=PAIRS, kernel=PAIRS, start=PADDINGS)
@pytest.mark.parametrize("groups", [1, 2])
def test_integer_convolution_agrees_with_loops(
    groups: int, seed: int, strides: Any, dilations: Any, kernel: Any, start: Any
) -> None:
    random = np.random.default_rng(seed)
    values = elements(random, DataType.UINT8, 2, 2 * groups, 5, 6)
    filter_ = elements(random, DataType.INT8, 2 * groups, 2, *kernel)
    zero = elements(random, DataType.UINT8, 1)
    filter_zeros = elements(random, DataType.INT8, 2 * groups).reshape(-1, 1, 1, 1)
    sizes = (2, 2 * groups, 4, 3)
    actual = reference_function("CONVOLUTION_INTEGER")(
        values,
        zero.reshape(1, 1, 1, 1),
        filter_,
        filter_zeros.reshape(1, -1, 1, 1),
        TensorDesc(DataType.INT32, sizes),
        strides,
        dilations,
        start,
        (0, 0),
        groups,
    )
    numbers = values.astype(np.int64) - zero, filter_.astype(np.int64) - filter_zeros
    expected = convolution(*numbers, sizes, strides, dilations, start)
    assert actual.tolist() == expected.tolist()


@settings(max_examples=examples(15))
@given(seed=SEEDS, strides=PAIRS, dilations=PAIRS, kernel=PAIRS, start=PADDINGS)
@pytest.mark.parametrize("groups", [1, 2])
def test_quantized_convolution_agrees_with_loops(
    groups: int, seed: int, strides: Any, dilations: Any, kernel: Any, start: Any
) -> None:
    random = np.random.default_rng(seed)
    values = elements(random, DataType.UINT8, 2, 2 * groups, 5, 6)
    filter_ = elements(random, DataType.INT8, 2 * groups, 2, *kernel)
    zero, output_zero = (elements(random, DataType.UINT8, 1, 1, 1, 1) for _ in range(2))
    filter_zeros = elements(random, DataType.INT8, 2 * groups, 1, 1, 1)
    bias = random.integers(-20_000, 20_000, (1, 2 * groups, 1, 1)).astype(np.int32)
    scale = random.uniform(0.1, 2, (1, 1, 1, 1)).astype(np.float32)
    filter_scales = random.uniform(0.1, 2, (1, 2 * groups, 1, 1)).astype(np.float32)
    # With such scales, most results need no clamping.
    output_scale = random.uniform(200, 2000, (1, 1, 1, 1)).astype(np.float32)
    sizes = (2, 2 * groups, 4, 3)
    arguments = (
        values,
        scale,
        zero,
        filter_,
        filter_scales,
        filter_zeros.reshape(1, -1, 1, 1),
        bias,
        output_scale,
        output_zero,
        TensorDesc(DataType.UINT8, sizes),
        strides,
        dilations,
        start,
        (0, 0),
        groups,
    )
    name = "QUANTIZED_LINEAR_CONVOLUTION"
    actual = reference_function(name)(*arguments)
    ((lowest, highest),) = function_of(name, "candidates")(*arguments)
    numbers = values.astype(np.int64) - zero, filter_.astype(np.int64) - filter_zeros
    sums = convolution(*numbers, sizes, strides, dilations, start) + bias
    quotient = sums * scale.astype(np.float64) * filter_scales / output_scale
    right = np.clip(np.rint(quotient) + output_zero, 0, 255)
    assert np.all((lowest <= actual) & (actual <= highest))
    assert np.all((lowest <= right) & (right <= highest))
    assert np.all(highest.astype(int) - lowest <= 1)


@settings(max_examples=examples(15))
@given(seed=SEEDS, strides=PAIRS, dilations=PAIRS, kernel=PAIRS, start=PADDINGS)
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("data_type", [DataType.INT8, DataType.UINT8])
def test_quantized_average_counts_padding_only_if_included(
    data_type: DataType,
    include: bool,
    seed: int,
    strides: Any,
    dilations: Any,
    kernel: Any,
    start: Any,
) -> None:
    random = np.random.default_rng(seed)
    values = elements(random, data_type, 1, 2, 6, 5)
    zero, output_zero = (elements(random, data_type, 1, 2, 1, 1) for _ in range(2))
    scale, output_scale = (
        random.uniform(0.1, 2, (1, 2, 1, 1)).astype(np.float32) for _ in range(2)
    )
    output = TensorDesc(data_type, (1, 2, 3, 4))
    tensors = values, scale, zero, output_scale, output_zero, output
    arguments = *tensors, strides, kernel, start, (0, 0), dilations, include
    name = "QUANTIZED_LINEAR_AVERAGE_POOLING"
    actual = reference_function(name)(*arguments)
    ((lowest, highest),) = function_of(name, "candidates")(*arguments)
    assert np.all((lowest <= actual) & (actual <= highest))
    for _, channel, row, column in np.ndindex(*output.Sizes):
        tensor = (values[0, channel].astype(np.float64) - zero[0, channel]) * scale[0, channel]
        window = elements_in_window(tensor, (row, column), kernel, strides, dilations, start)
        numbers = [value for _, value in window]
        count = kernel[0] * kernel[1] if include else len(numbers)
        if count:
            quotient = sum(numbers) / count / output_scale[0, channel, 0, 0]
            exact = np.rint(quotient) + output_zero[0, channel, 0, 0]
            right = np.clip(exact, data_type.minimum, data_type.maximum)
        else:
            right = data_type.minimum
        at = (0, channel, row, column)
        assert lowest[at] <= right <= highest[at]
        assert not count or int(highest[at]) - int(lowest[at]) <= 1


@pytest.mark.parametrize(
    ("scale", "output_scale", "count", "exact"),
    [
        (1.0, 1.0, 2, True),
        (0.5, 0.5, 2, True),
        (3.0, 1.0, 2, False),
        (1.0, 3.0, 2, False),
        (1.0, 1.0, 6, False),
    ],
)
def test_averages_are_exact_only_for_powers_of_two(
    scale: float, output_scale: float, count: int, exact: bool
) -> None:
    values = np.arange(12, dtype=np.int8).reshape(1, 1, 1, 12)
    scales = np.array([scale], np.float32), np.array([output_scale], np.float32)
    output = TensorDesc(DataType.INT8, (1, 1, 1, 13 - count))
    tensors = values, scales[0], None, scales[1], None, output
    arguments = *tensors, (1, 1), (1, count), (0, 0), (0, 0), (1, 1), False
    name = "QUANTIZED_LINEAR_AVERAGE_POOLING"
    ((lowest, highest),) = function_of(name, "candidates")(*arguments)
    quotient = (np.arange(13 - count) + (count - 1) / 2) * scale / output_scale
    halfway = (quotient % 1 == 0.5).reshape(lowest.shape)
    assert halfway.any()
    # Only an inexact quotient may be rounded to either of two integers.
    assert (highest - lowest == (halfway & (not exact))).all()
    assert not exact or (lowest % 2 == 0).all()
