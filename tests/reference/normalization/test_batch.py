"""Batch normalization, its training and gradients agree with each other and finite differences.

The tested code is in `batch.py` and `batch_gradients.py` of `dmlconf/reference/normalization/` and
of `dmlconf/permitted/normalization/`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.precision.accumulation import roundings
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import function_of, uniform

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(1, 4)] * 3)
EPSILON = 0.5
"""Large enough for finite differences of a single element, whose variance is 0."""


def evaluate(name: str, outputs: dict[str, tuple[int, ...]], part: str = "", **inputs: Any) -> Any:
    """Return an operator's outputs, or a `part` of what is permitted."""
    descs = {output: TensorDesc(DataType.FLOAT32, sizes) for output, sizes in outputs.items()}
    function = function_of(f"BATCH_NORMALIZATION{name}", part)
    return function(**inputs, **descs, Epsilon=EPSILON)


def forward(tensor: Array, part: str = "", **parameters: Any) -> Array:
    outputs = {"OutputTensor": tensor.shape}
    result: Array = evaluate(
        "", outputs, part, InputTensor=tensor, Spatial=True, FusedActivation=None, **parameters
    )
    return result


def trained(
    tensor: Array, scale: Array, bias: Array, add: Array | None = None, part: str = ""
) -> Any:
    return evaluate(
        "_TRAINING",
        {
            "OutputTensor": tensor.shape,
            "OutputMeanTensor": scale.shape,
            "OutputVarianceTensor": scale.shape,
        },
        part,
        InputTensor=tensor,
        ScaleTensor=scale,
        BiasTensor=bias,
        FusedAddTensor=add,
        FusedActivation=None,
    )


def gradients(name: str, **inputs: Any) -> Any:
    sizes, channel_sizes = inputs["InputTensor"].shape, inputs["ScaleTensor"].shape
    outputs = {
        "OutputGradientTensor": sizes,
        "OutputScaleGradientTensor": channel_sizes,
        "OutputBiasGradientTensor": channel_sizes,
    }
    return evaluate(name, outputs, **inputs)


@given(SEEDS, SIZES)
def test_training_normalizes_by_the_mean_and_variance_it_returns(
    seed: int, sizes: tuple[int, ...]
) -> None:
    channel_sizes = (1, sizes[1], 1)
    tensor, scale, bias = (
        uniform(seed, sizes),
        uniform(seed + 1, channel_sizes),
        uniform(seed + 2, channel_sizes),
    )
    add = uniform(seed + 3, sizes)
    actual, mean, variance = trained(tensor, scale, bias, add)
    np.testing.assert_allclose(mean, tensor.mean((0, 2), keepdims=True), atol=1e-5)
    np.testing.assert_allclose(variance, tensor.var((0, 2), keepdims=True), atol=1e-5)
    parameters: dict[str, Any] = {"MeanTensor": mean, "VarianceTensor": variance}
    parameters |= {"ScaleTensor": scale, "BiasTensor": bias}
    np.testing.assert_allclose(actual, forward(tensor, **parameters) + add, atol=1e-5)


@given(SEEDS, SIZES)
def test_mean_variance_scale_and_bias_may_be_broadcast(seed: int, sizes: tuple[int, ...]) -> None:
    tensor = uniform(seed, sizes)
    names = ("MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor")
    shared: dict[str, Any] = {
        name: np.abs(uniform(seed + at, (sizes[0], 1, sizes[2])))
        for at, name in enumerate(names, 1)
    }
    whole: dict[str, Any] = {name: np.broadcast_to(array, sizes) for name, array in shared.items()}
    assert (forward(tensor, **shared) == forward(tensor, **whole)).all()


@given(SEEDS, SIZES)
def test_gradients_agree_with_finite_differences(seed: int, sizes: tuple[int, ...]) -> None:
    channel_sizes = (1, sizes[1], 1)
    tensor, scale = uniform(seed, sizes).astype(np.float64), uniform(seed + 1, channel_sizes)
    gradient = uniform(seed + 3, sizes)
    mean, variance = tensor.mean((0, 2), keepdims=True), tensor.var((0, 2), keepdims=True)
    step = 1e-5

    def loss(x: Array, factor: Array, *, training: bool) -> float:
        m = x.mean((0, 2), keepdims=True) if training else mean
        v = x.var((0, 2), keepdims=True) if training else variance
        return float((gradient * factor * (x - m) / np.sqrt(v + EPSILON)).sum())

    inputs = {
        "InputTensor": tensor,
        "InputGradientTensor": gradient,
        "MeanTensor": mean,
        "VarianceTensor": variance,
        "ScaleTensor": scale,
    }
    at = (sizes[0] - 1, sizes[1] // 2, 0)
    moved = np.zeros(sizes)
    moved[at] = step
    more = np.zeros(channel_sizes)
    more[0, at[1], 0] = step
    for name, training in (("_GRAD", False), ("_TRAINING_GRAD", True)):
        actual = gradients(name, **inputs)
        up = loss(tensor + moved, scale, training=training)
        down = loss(tensor - moved, scale, training=training)
        np.testing.assert_allclose(actual[0][at], (up - down) / step / 2, atol=1e-4)
        up = loss(tensor, scale + more, training=training)
        down = loss(tensor, scale - more, training=training)
        np.testing.assert_allclose(actual[1][0, at[1], 0], (up - down) / step / 2, atol=1e-4)
        np.testing.assert_allclose(actual[2], gradient.sum((0, 2), keepdims=True), atol=1e-5)


@given(SEEDS, SIZES)
def test_error_scales_are_at_least_as_great_as_gradients(seed: int, sizes: tuple[int, ...]) -> None:
    channel_sizes = (sizes[0], 1, 1)
    inputs: dict[str, Any] = {
        "InputTensor": uniform(seed, sizes),
        "InputGradientTensor": uniform(seed + 1, sizes),
        "MeanTensor": uniform(seed + 2, channel_sizes),
        "VarianceTensor": np.abs(uniform(seed + 3, channel_sizes)),
        "ScaleTensor": uniform(seed + 4, channel_sizes),
    }
    outputs = {
        "OutputGradientTensor": sizes,
        "OutputScaleGradientTensor": channel_sizes,
        "OutputBiasGradientTensor": channel_sizes,
    }
    for name in ("_GRAD", "_TRAINING_GRAD"):
        results = evaluate(name, outputs, **inputs)
        error_scales = evaluate(name, outputs, "error_scale", **inputs)
        for result, error_scale in zip(results, error_scales, strict=True):
            assert (np.abs(result) <= ErrorScale.of(error_scale).sums * (1 + 1e-6)).all()


@given(SEEDS, SIZES)
def test_normalization_may_be_off_by_four_roundings_of_each_result(
    seed: int, sizes: tuple[int, ...]
) -> None:
    channel_sizes = (sizes[0], 1, 1)
    tensor = uniform(seed, sizes)
    inputs: dict[str, Any] = {
        "BiasTensor": uniform(seed + 1, sizes),
        "MeanTensor": uniform(seed + 2, channel_sizes),
        "VarianceTensor": np.abs(uniform(seed + 3, channel_sizes)),
        "ScaleTensor": uniform(seed + 4, channel_sizes),
    }
    # The rule of OutputTensor says `products: 6`.
    permitted = roundings(6) * ErrorScale.of(forward(tensor, "error_scale", **inputs)).sums
    assert (4 * np.abs(forward(tensor, **inputs)) <= permitted * (1 + 1e-6)).all()


def test_variance_from_the_mean_of_squares_is_within_the_limit() -> None:
    one = np.ones((1, 1), np.float32)
    count = np.float32(1000)
    for seed in range(20):
        tensor = np.random.default_rng(seed).normal(3, 1, (1, 1000)).astype(np.float32)
        squares = np.cumsum(tensor * tensor, 1, dtype=np.float32)[:, -1:] / count
        mean = np.cumsum(tensor, 1, dtype=np.float32)[:, -1:] / count
        right = trained(tensor, one, one)[2]
        scale = trained(tensor, one, one, part="error_scale")[2]
        error = np.abs(squares - mean * mean - right)
        limit = roundings(1000) * 2.0**-24 * ErrorScale.of(scale).sums
        assert (error <= limit).all()
        assert (limit < 1e-4).all()


def test_gradient_may_be_0_if_a_subnormal_product_is_flushed() -> None:
    """1e-12 * 1e-28 is subnormal in FLOAT32, and 0 / 0 is NaN."""

    def one(*values: float) -> Array:
        return np.array([values], np.float32)

    variance = one(2.0**-25 - EPSILON, -EPSILON, 1)
    descs: dict[str, tuple[int, ...]] = {
        f"Output{part}GradientTensor": (1, 3) for part in ("", "Scale", "Bias")
    }
    of_input, _, _ = evaluate(
        "_GRAD",
        descs,
        "error_scale",
        InputTensor=one(1, 1, 1),
        InputGradientTensor=one(1e-28, 1e-28, 1),
        MeanTensor=one(0, 0, 0),
        VarianceTensor=variance,
        ScaleTensor=one(1e-12, 1e-12, 1),
    )
    undefined, flushed = of_input.others
    assert flushed[0, 2] == np.float32(1 / np.sqrt(1.5))
    assert flushed[0, :2].tolist() == [0, 0]
    assert np.isnan(undefined).tolist() == [[False, True, False]]
    assert of_input.overflows.tolist() == [[False, True, False]]


def test_gradient_may_overflow_if_the_scale_multiplies_early() -> None:
    """The scale 3e38 times 3 overflows, and times the gradient 0.01 it does not."""
    tensor = np.array([[3, -3]], np.float32)
    descs: dict[str, tuple[int, ...]] = {
        f"Output{part}GradientTensor": (1, 2) for part in ("", "Scale", "Bias")
    }
    one = np.ones((1, 2), np.float32)
    of_input, _, _ = evaluate(
        "_TRAINING_GRAD",
        descs,
        "error_scale",
        InputTensor=tensor,
        InputGradientTensor=one * np.float32(0.01),
        MeanTensor=one * 0,
        VarianceTensor=one,
        ScaleTensor=np.array([[3e38, 3]], np.float32),
    )
    assert of_input.overflows.tolist() == [[True, False]]
