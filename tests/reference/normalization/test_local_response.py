"""Local response normalization divides by a power of the sum of squares in each window.

For odd windows its gradient agrees with finite differences.

The tested code is in `dmlconf/reference/normalization/local_response.py` and
`dmlconf/permitted/normalization/local_response.py`.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import function_of, uniform

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(1, 4)] * 4)
LOCAL_SIZES = st.integers(1, 9)
ALPHA, BETA, BIAS = 0.5, 0.75, 2.0


def evaluate(tensor: Array, local_size: int, part: str = "", **more: Any) -> Array:
    """Return the result, or with `InputGradientTensor` the gradient, or a `part` of either."""
    name = "LOCAL_RESPONSE_NORMALIZATION" + ("_GRAD" if "InputGradientTensor" in more else "")
    output = "OutputGradientTensor" if "InputGradientTensor" in more else "OutputTensor"
    fields = {"CrossChannel": True, "Alpha": ALPHA, "Beta": BETA, "Bias": BIAS, **more}
    fields[output] = TensorDesc(DataType.FLOAT32, tensor.shape)
    result: Array = function_of(name, part)(InputTensor=tensor, LocalSize=local_size, **fields)
    return result


@given(SEEDS, SIZES, LOCAL_SIZES, st.booleans())
def test_elements_are_divided_by_a_power_of_their_window(
    seed: int, sizes: tuple[int, ...], local_size: int, cross_channel: bool
) -> None:
    tensor = uniform(seed, sizes)
    actual = evaluate(tensor, local_size, CrossChannel=cross_channel)
    axes = (1,) if cross_channel else (2, 3)
    for at in product(*map(range, sizes)):
        where: list[Any] = list(at)
        for axis in axes:
            first, last = at[axis] - (local_size - 1) // 2, at[axis] + local_size // 2
            where[axis] = slice(max(first, 0), last + 1)
        squares = np.square(tensor[tuple(where)], dtype=np.float64).sum()
        right = tensor[at] / (BIAS + ALPHA / local_size * squares) ** BETA
        np.testing.assert_allclose(actual[at], right, rtol=1e-6)


@given(SEEDS, SIZES, st.integers(0, 3), st.booleans())
def test_gradient_of_an_odd_window_agrees_with_finite_differences(
    seed: int, sizes: tuple[int, ...], each_side: int, cross_channel: bool
) -> None:
    tensor = uniform(seed, sizes).astype(np.float64)
    gradient = uniform(seed + 1, sizes)
    options: dict[str, Any] = {"CrossChannel": cross_channel}
    actual = evaluate(tensor, 2 * each_side + 1, InputGradientTensor=gradient, **options)
    step = 2.0**-7
    moved = np.zeros(sizes)
    at = tuple(size // 2 for size in sizes)
    moved[at] = step
    up = evaluate(tensor + moved, 2 * each_side + 1, **options)
    down = evaluate(tensor - moved, 2 * each_side + 1, **options)
    slope = (gradient * (up.astype(np.float64) - down)).sum() / step / 2
    np.testing.assert_allclose(actual[at], slope, atol=2e-3)


@given(SEEDS, st.integers(2, 6))
def test_the_window_of_the_gradient_is_not_mirrored(seed: int, channels: int) -> None:
    """The first output depends on channels 0 and 1; DirectML gives channel 1 no gradient."""
    tensor = np.abs(uniform(seed, (1, channels, 1, 1))) + 1
    gradient = np.zeros_like(tensor)
    gradient[0, 0] = 1
    actual = evaluate(tensor, 2, InputGradientTensor=gradient)
    assert actual[0, 0].all()
    assert not actual[0, 1:].any()


@given(SEEDS, SIZES, LOCAL_SIZES, st.booleans())
def test_error_scales_are_at_least_as_great_as_results(
    seed: int, sizes: tuple[int, ...], local_size: int, cross_channel: bool
) -> None:
    tensor = uniform(seed, sizes)
    for more in ({}, {"InputGradientTensor": uniform(seed + 1, sizes)}):
        fields: dict[str, Any] = {"CrossChannel": cross_channel, **more}
        result = evaluate(tensor, local_size, **fields)
        error_scale = ErrorScale.of(evaluate(tensor, local_size, "error_scale", **fields)).sums
        assert (np.abs(result) <= error_scale * (1 + 1e-6)).all()
        assert (error_scale < 1e6).all()


@given(SEEDS, st.integers(0, 8), LOCAL_SIZES)
def test_an_infinite_gradient_beside_zeros_stays_infinite(seed: int, index: int, size: int) -> None:
    tensor = uniform(seed, (1, 1, 3, 3))
    gradient = np.zeros_like(tensor)
    gradient.ravel()[index] = np.inf
    # The factor of its own gradient is positive for a small element.
    small = np.where(np.isinf(gradient), np.float32(0.25), tensor)
    result = evaluate(small, size, InputGradientTensor=gradient, CrossChannel=False)
    assert result.ravel()[index] == np.inf
