"""Normalized elements have mean 0, variance 1 or norm 1; right kernels are within the limits.

An error scale has spans: each element lies in one of them before it is stored.

The tested code is in `dmlconf/reference/normalization/mean_variance.py` and
`dmlconf/permitted/normalization/mean_variance.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.half import STORES
from dmlconf.precision.accumulation import roundings
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import function_of
from tests.truncation import toward_zero

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(1, 4)] * 4)


def uniform(seed: int, sizes: tuple[int, ...], data_type: DataType = DataType.FLOAT32) -> Array:
    """Return random numbers from -3 to 5."""
    return np.random.default_rng(seed).uniform(-3, 5, sizes).astype(data_type.dtype)


def evaluate(operator: str, tensor: Array, part: str = "", **fields: Any) -> Any:
    """Return a normalization's result, or a `part` of what is permitted."""
    fields.setdefault("OutputTensor", TensorDesc(DataType.FLOAT32, tensor.shape))
    return function_of(operator, part)(InputTensor=tensor, **fields)


def normalized(tensor: Array, axes: tuple[int, ...], part: str = "", **fields: Any) -> Any:
    """Return MEAN_VARIANCE_NORMALIZATION2, by default with an Epsilon of 0."""
    usual: dict[str, Any] = {
        "ScaleTensor": None,
        "BiasTensor": None,
        "UseMean": True,
        "UseVariance": True,
        "Epsilon": 0.0,
        "FusedActivation": None,
    }
    return evaluate("MEAN_VARIANCE_NORMALIZATION2", tensor, part, Axes=axes, **{**usual, **fields})


@given(SEEDS, SIZES, st.sets(st.integers(0, 3)))
def test_normalized_elements_have_mean_0_and_variance_1(
    seed: int, sizes: tuple[int, ...], axes: set[int]
) -> None:
    over = tuple(axes)
    actual = normalized(uniform(seed, sizes), over, Epsilon=1e-6).astype(np.float64)
    np.testing.assert_allclose(actual.mean(over), 0, atol=1e-6)
    if all(sizes[axis] == 1 for axis in axes):
        assert not actual.any()
    else:
        # Small variances, which are rare, give less than 1.
        assert (actual.std(over) <= 1 + 1e-6).all()
        assert np.median(actual.std(over)) > 0.99


@given(SEEDS, SIZES)
def test_without_use_mean_the_mean_of_the_squares_is_1(seed: int, sizes: tuple[int, ...]) -> None:
    tensor = uniform(seed, sizes)
    actual = normalized(tensor, (1, 3), UseMean=False).astype(np.float64)
    np.testing.assert_allclose(np.square(actual).mean((1, 3)), 1, rtol=1e-5)
    assert (np.sign(actual) == np.sign(tensor)).all()


@given(SEEDS, SIZES, st.booleans(), st.booleans())
def test_older_normalizations_are_special_forms_of_the_newest(
    seed: int, sizes: tuple[int, ...], cross_channel: bool, variance: bool
) -> None:
    tensor = uniform(seed, sizes)
    fields: dict[str, Any] = {
        "ScaleTensor": uniform(seed + 1, (1, sizes[1], 1, 1)),
        "BiasTensor": uniform(seed + 2, sizes),
        "Epsilon": 0.5,
        "FusedActivation": {"operator": "ACTIVATION_TANH"},
    }
    axes = (1, 2, 3) if cross_channel else (2, 3)
    for part in ("", "error_scale"):
        newest = normalized(tensor, axes, part, UseVariance=variance, **fields)
        fields["NormalizeVariance"] = variance
        name = "MEAN_VARIANCE_NORMALIZATION"
        oldest = evaluate(name, tensor, part, CrossChannel=cross_channel, **fields)
        middle = evaluate(f"{name}1", tensor, part, Axes=axes, **fields)
        del fields["NormalizeVariance"]
        for other in (oldest, middle):
            assert type(newest) is type(other)
            if part:
                assert (newest.sums == other.sums).all()
            else:
                assert (newest == other).all()


@given(SEEDS, SIZES, st.integers(0, 3), st.sampled_from([1, 2]))
def test_lp_normalization_gives_a_norm_of_1(
    seed: int, sizes: tuple[int, ...], axis: int, order: int
) -> None:
    tensor = uniform(seed, sizes)
    actual = evaluate("LP_NORMALIZATION", tensor, Axis=axis, Epsilon=0.0, P=order)
    sums = (np.abs(actual.astype(np.float64)) ** order).sum(axis)
    np.testing.assert_allclose(sums, 1, rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_squared_norm_beyond_float16_is_65504_or_infinite(order: int) -> None:
    tensor = np.full((1, 4), 300, np.float16)
    output = TensorDesc(DataType.FLOAT16, (1, 4))
    fields = {"Axis": 1, "Epsilon": 0.0, "P": order, "OutputTensor": output}
    actual = evaluate("LP_NORMALIZATION", tensor, "error_scale", **fields)
    largest = np.float16(300 / 65504**0.5)
    assert actual.overflows is None
    assert {other.flat[0] for other in actual.others} >= {largest, np.float16(0)}
    actual = normalized(tensor, (1,), "error_scale", UseMean=False, OutputTensor=output)
    assert {other.flat[0] for other in actual.others} == {largest, np.float16(0)}
    actual = normalized(tensor / 300, (1,), "error_scale", UseMean=False, OutputTensor=output)
    assert not actual.overflows.any()
    assert (actual.sums < 9).all()


def test_variance_below_float16_permits_any_result() -> None:
    """The squares, 2^-26, are less than half of 2^-24, the least FLOAT16 number."""
    tensor = np.full((1, 4), 2.0**-13, np.float16)
    output = TensorDesc(DataType.FLOAT16, (1, 4))
    fields = {"Axis": 1, "Epsilon": 0.0, "P": 2, "OutputTensor": output}
    assert (evaluate("LP_NORMALIZATION", tensor, "error_scale", **fields).sums > 1e38).all()
    actual = normalized(tensor, (1,), "error_scale", UseMean=False, OutputTensor=output)
    assert (actual.sums > 1e38).all()


@pytest.mark.parametrize("epsilon", [0.5, 0.0, -0.5])
def test_single_element_gives_the_bias_if_epsilon_is_positive(epsilon: float) -> None:
    tensor = np.array([[-2, -0.25, 0, 3]], np.float32)
    bias = np.full((1, 4), 7, np.float32)
    fields: dict[str, Any] = {"BiasTensor": bias, "Epsilon": epsilon}
    formula = normalized(tensor, (0,), **fields)
    assert (formula == 7).all() if epsilon > 0 else np.isnan(formula).all()
    actual = normalized(tensor, (0,), "error_scale", **fields)
    assert (actual.sums < 1e38).all() or epsilon <= 0
    # Only if the formula divides 0 by 0 may a device divide by the root of element + Epsilon.
    of_elements = np.where(tensor + epsilon > 0, bias, np.nan)
    others = [np.array_equal(other, of_elements, equal_nan=True) for other in actual.others]
    assert any(others) == (epsilon == 0)


def test_a_negative_epsilon_magnifies_the_error_of_the_variance() -> None:
    tensor = np.array([[1, 1, 1, 1.0625]], np.float32)
    fields: dict[str, Any] = {"UseMean": False}
    with_epsilon = normalized(tensor, (1,), "error_scale", Epsilon=-1.0, **fields).sums
    without = normalized(tensor, (1,), "error_scale", Epsilon=0.0, **fields).sums
    left = float(np.square(tensor).mean()) - 1
    output = tensor / left**0.5
    assert (with_epsilon > output / left).all()
    assert (without < 10 * tensor).all()


@pytest.mark.parametrize(
    ("order", "square", "growth"), [(1, 49, 49 + 48), (2, 25, (1 + 25 + 24) / 2)]
)
def test_a_negative_epsilon_magnifies_the_error_of_the_norm(
    order: int, square: float, growth: float
) -> None:
    """Epsilon leaves 1 of the norm's square. `growth` is the error scale over the output."""
    tensor = np.array([[3, 4]], np.float32)
    epsilon = 1.0 - square
    fields = {"Axis": 1, "P": order, "OutputTensor": TensorDesc(DataType.FLOAT32, (1, 2))}
    magnified = evaluate("LP_NORMALIZATION", tensor, "error_scale", Epsilon=epsilon, **fields).sums
    plain = evaluate("LP_NORMALIZATION", tensor, "error_scale", Epsilon=0.0, **fields).sums
    np.testing.assert_allclose(magnified / tensor, growth, rtol=1e-6)
    np.testing.assert_allclose(plain, tensor / square**0.5)


@pytest.mark.parametrize(
    ("first", "length"), [(0.1, 1000), (1e4, 6000)], ids=["equal", "lost beside the first"]
)
def test_serial_sums_whose_errors_accumulate_are_permitted(first: float, length: int) -> None:
    drawn = np.random.default_rng(0).normal(0, 1, (1, length)).astype(np.float32)
    tensor = np.full((1, length), 0.1, np.float32) if first < 1 else drawn
    tensor[0, 0] = first
    count = np.float32(length)
    centred = tensor - np.cumsum(tensor, 1, dtype=np.float32)[:, -1:] / count
    variance = np.cumsum(centred * centred, 1, dtype=np.float32)[:, -1:] / count
    actual = centred / np.sqrt(variance + np.float32(1e-5))
    error = np.abs(actual.astype(np.float64) - normalized(tensor, (1,), Epsilon=1e-5))
    scale = normalized(tensor, (1,), "error_scale", Epsilon=1e-5)
    limit = roundings(length + 2) * 2.0**-24 * scale.sums
    assert (error <= limit).all()
    assert (limit < 0.01).all()


@given(SEEDS, st.sampled_from(["product", "factor", "reciprocal"]), st.sampled_from(STORES))
def test_spans_hold_a_product_stored_before_a_bias_cancels_it(
    seed: int, stored: str, store: Store
) -> None:
    generator = np.random.default_rng(seed)
    tensor, scale = (generator.uniform(low, 5, (1, 16)).astype(np.float16) for low in (0.1, 0.5))
    inverse = 1 / np.sqrt(np.square(tensor, dtype=np.float64).mean(1, keepdims=True))
    factor: Array | float = scale.astype(np.float64)
    if stored == "product":
        actual = store(tensor * inverse * factor)
    elif stored == "factor":
        actual = tensor * store(inverse * factor)
    else:
        factor, actual = 1.0, tensor * store(inverse)
    bias = (-tensor * inverse * factor).astype(np.float16)
    fields = {
        "UseMean": False,
        "ScaleTensor": None if stored == "reciprocal" else scale,
        "BiasTensor": bias,
        "OutputTensor": TensorDesc(DataType.FLOAT16, tensor.shape),
    }
    [(least, greatest)] = normalized(tensor, (1,), "error_scale", **fields).spans
    assert (least <= actual + bias).all()
    assert (actual + bias <= greatest).all()


def test_spans_hold_results_of_truncated_variances_beyond_float16() -> None:
    generator = np.random.default_rng(2)
    spread = 280 * generator.choice([-1, 1], (1, 32)) * generator.uniform(0.9, 1.1, (1, 32))
    tensor = (100 + spread).astype(np.float16)
    fields = {"Epsilon": 1e-5, "OutputTensor": TensorDesc(DataType.FLOAT16, tensor.shape)}
    centred = tensor - toward_zero(tensor.mean(1, np.float64, keepdims=True))
    variance = np.square(centred).mean(1, keepdims=True)
    assert variance > np.finfo(np.float16).max
    actual = centred / np.sqrt(toward_zero(variance) + 1e-5)
    spans = normalized(tensor, (1,), "error_scale", **fields).spans
    within = [(least <= actual) & (actual <= greatest) for least, greatest in spans]
    assert np.logical_or.reduce(within).all()


@pytest.mark.parametrize("operator", ["MEAN_VARIANCE_NORMALIZATION2", "LP_NORMALIZATION"])
def test_quotient_between_those_of_the_permitted_divisors_is_wrong(operator: str) -> None:
    tensor = np.array([[300, 500, 300, 500]], np.float16)
    output = TensorDesc(DataType.FLOAT16, tensor.shape)
    if operator == "LP_NORMALIZATION":
        fields: dict[str, Any] = {"Axis": 1, "P": 2, "Epsilon": 0.0, "OutputTensor": output}
        scale = evaluate(operator, tensor, "error_scale", **fields)
        square = np.square(tensor.astype(np.float64)).sum()
    else:
        scale = normalized(tensor, (1,), "error_scale", UseMean=False, OutputTensor=output)
        square = np.square(tensor.astype(np.float64)).mean()
    right = [tensor / np.sqrt(divisor) for divisor in (square, 65504.0, np.inf)]
    # FLOAT16 stores the square as 65504 or infinity.
    for values, expected in [*((each, True) for each in right), (1.1 * right[0], False)]:
        within = [(least <= values) & (values <= greatest) for least, greatest in scale.spans]
        assert np.logical_or.reduce(within).all() == expected


def test_variance_from_the_mean_of_squares_is_within_the_limit() -> None:
    count = np.float32(1000)
    for seed in range(20):
        tensor = np.random.default_rng(seed).normal(3, 1, (1, 1000)).astype(np.float32)
        squares = np.cumsum(tensor * tensor, 1, dtype=np.float32)[:, -1:] / count
        mean = np.cumsum(tensor, 1, dtype=np.float32)[:, -1:] / count
        actual = (tensor - mean) / np.sqrt(squares - mean * mean + np.float32(1e-5))
        error = np.abs(actual.astype(np.float64) - normalized(tensor, (1,), Epsilon=1e-5))
        scale = normalized(tensor, (1,), "error_scale", Epsilon=1e-5)
        limit = roundings(1000 + 2) * 2.0**-24 * scale.sums
        assert (error <= limit).all()
        assert (limit < 1e-3).all()
