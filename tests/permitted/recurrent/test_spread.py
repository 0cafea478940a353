"""Error bounds of recurrent layers accept right kernels and refuse wrong elements.

The tested code is in `dmlconf/permitted/recurrent/spread.py`,
`dmlconf/permitted/recurrent/quantity.py` and `dmlconf/permitted/recurrent/gru.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.permitted.recurrent.gru import gru_error_scale
from dmlconf.permitted.recurrent.quantity import Quantity
from dmlconf.permitted.recurrent.spread import Spread, independent, sources_of
from dmlconf.precision.accumulation import float16_ulps, roundings
from dmlconf.reference.recurrent.gru import gru
from dmlconf.tensors.datatypes import Array, DataType
from tests.truncation import toward_zero

STEPS, BATCH, INPUTS, HIDDEN = 8, 4, 6, 12

SEEDS = (1, 3)
"""Of 0 to 4, those with the largest errors of right kernels."""

Store = Callable[[Array], Array]


def nearest(values: Array) -> Array:
    return values.astype(np.float16).astype(np.float32)


def truncated(values: Array) -> Array:
    return toward_zero(values).astype(np.float32)


def single(values: Array) -> Array:
    return values.astype(np.float32)


def tensors(dtype: type, weights: str, seed: int) -> dict[str, Array]:
    """Return an input, and weights that are random or all equal."""
    generator = np.random.default_rng(seed)
    result = {"InputTensor": generator.uniform(-1, 1, (1, STEPS, BATCH, INPUTS))}
    for name, width in (("WeightTensor", INPUTS), ("RecurrenceTensor", HIDDEN)):
        rows = generator.uniform(-0.5, 0.5, (1, 1, 3, HIDDEN, width))
        if weights == "equal":
            rows = np.broadcast_to(rows[..., :1, :1], rows.shape)
        result[name] = rows.reshape(1, 1, 3 * HIDDEN, width)
    return {name: values.astype(dtype) for name, values in result.items()}


def arguments(given: dict[str, Array], linear_before_reset: bool) -> dict[str, Any]:
    data_type = DataType.FLOAT16 if given["InputTensor"].dtype == np.float16 else DataType.FLOAT32
    return {
        **given,
        "BiasTensor": None,
        "HiddenInitTensor": None,
        "SequenceLengthsTensor": None,
        "OutputSequenceTensor": TensorDesc(data_type, (STEPS, 1, BATCH, HIDDEN)),
        "OutputSingleTensor": None,
        "ActivationDescs": [
            {"operator": "ACTIVATION_SIGMOID"},
            {"operator": "ACTIVATION_TANH"},
        ],
        "Direction": "FORWARD",
        "LinearBeforeReset": linear_before_reset,
    }


def sums_in_order(left: Array, right: Array) -> Array:
    terms = left[:, :, np.newaxis] * right[np.newaxis]
    total: Array = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]
    return total


def kernel(given: dict[str, Array], before: bool, store: Store, other: Store) -> Array:
    """Return the hidden nodes of a kernel; `before` is LinearBeforeReset.

    `store` rounds sums, gates and states; `other` rounds arguments of activations, and products
    with gates.
    """
    x, weight, recurrence = (given[name][0].astype(np.float32) for name in given)
    weight, recurrence = weight[0].T, recurrence[0].T
    gates, last = slice(0, 2 * HIDDEN), slice(2 * HIDDEN, None)
    hidden = np.zeros((BATCH, HIDDEN), np.float32)
    outputs = []
    for step in x:
        sums = store(sums_in_order(step, weight))
        product = store(sums_in_order(hidden, recurrence[:, gates]))
        z, r = np.split(store(1 / (1 + np.exp(-other(sums[:, gates] + product)))), 2, axis=1)
        if before:
            reset = other(r * store(sums_in_order(hidden, recurrence[:, last])))
        else:
            reset = store(sums_in_order(store(r * hidden), recurrence[:, last]))
        h = store(np.tanh(other(sums[:, last] + reset)))
        hidden = store(other((1 - z) * h) + other(z * hidden))
        outputs.append(hidden)
    return np.stack(outputs)


@dataclass(frozen=True)
class Right:
    """The exact results for some tensors, the limits of errors, and results of other kernels."""

    expected: Array
    limit: Array
    spans: tuple[tuple[Array, Array], ...]

    def fractions_of_limits(self, actual: Array) -> Array:
        """Return the errors from the nearest right result, divided by their limits."""
        errors = [np.abs(actual - self.expected)]
        for least, greatest in self.spans:
            errors.append(np.maximum(np.maximum(least - actual, actual - greatest), 0))
        fraction: Array = np.min(errors, axis=0) / self.limit
        return fraction


@cache
def right_results(dtype: type, weights: str, seed: int, before: bool) -> Right:
    """Return what is right for `tensors(dtype, weights, seed)`."""
    given = tensors(dtype, weights, seed)
    desc = arguments(given, before)
    exact = {name: values.astype(np.float64) for name, values in given.items()}
    (expected,) = gru(**{**desc, **exact})
    (error_scale,) = gru_error_scale(**desc)
    limit = error_scale.sums * 2.0**-24 * roundings(2 + INPUTS + HIDDEN)
    if dtype == np.float16:
        assert error_scale.stored is not None
        limit = limit + error_scale.stored * 2.0**-10 + 1.5 * float16_ulps(expected)
    spans = tuple((least[:, 0], greatest[:, 0]) for least, greatest in error_scale.spans)
    return Right(expected[:, 0], limit[:, 0], spans)


@pytest.mark.slow
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("weights", ["random", "equal"])
@pytest.mark.parametrize(
    ("dtype", "store", "other"),
    [
        (np.float32, single, single),
        (np.float16, nearest, single),
        (np.float16, nearest, nearest),
        (np.float16, truncated, single),
        (np.float16, truncated, truncated),
    ],
)
def test_results_of_right_kernels_are_accepted(
    dtype: type, store: Store, other: Store, weights: str, before: bool
) -> None:
    for seed in SEEDS:
        given = tensors(dtype, weights, seed)
        actual = kernel(given, before, store, other)
        right = right_results(dtype, weights, seed, before)
        assert right.fractions_of_limits(actual).max() <= 1


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("dtype", "least"), [(np.float32, 1.0), (np.float16, 0.9)])
def test_most_large_elements_one_percent_off_are_refused(
    dtype: type, least: float, before: bool
) -> None:
    given = tensors(dtype, "random", 1)
    right = kernel(given, before, single, single)
    large = np.abs(right) > np.abs(right).max() / 4
    results = right_results(dtype, "random", 1, before)
    refused = results.fractions_of_limits(right * 1.01)[large] > 1
    assert refused.mean() >= least


def test_error_of_equal_states_doubles_or_cancels() -> None:
    error, sources = Spread.none((1, 2)).widened(np.ones((1, 2))), sources_of(np.array([[3.0, 5]]))
    np.testing.assert_allclose(error.times(np.array([[1.0], [1.0]]), sources).limit, np.hypot(1, 1))
    (state,) = independent([error], sources)
    equal_states = state.times(np.ones((2, 2)), sources)
    np.testing.assert_allclose(
        equal_states.times(np.array([[1.0], [1.0]]), sources).limit, 2 * np.hypot(1, 1)
    )
    difference = equal_states.times(np.array([[1.0], [-1.0]]), sources)
    np.testing.assert_allclose(difference.limit, 0.0, atol=1e-12)


def test_independent_errors_stay_independent_after_a_product() -> None:
    """`first` has only the second error after the product, and `second` only the first."""
    own, sources = np.zeros((1, 1)), np.ones((1, 1), bool)
    first = Spread(own, np.array([[[0.0]], [[1.0]]]))
    second = Spread(own, np.array([[[-1.0]], [[0.0]]]))
    total = first.times(np.ones((1, 1)), sources) + second
    np.testing.assert_allclose(total.limit, 2**0.5)


def test_equal_values_may_share_an_error() -> None:
    """Shared errors give 4 in a sum and 0 in a difference; own errors give 2 in both."""
    error, sources = Spread.none((1, 4)).widened(np.ones((1, 4))), sources_of(np.full((1, 4), 3.0))
    np.testing.assert_allclose(error.times(np.ones((4, 1)), sources).limit, np.hypot(4, 2))
    np.testing.assert_allclose(error.times(np.array([[1.0, 1, -1, -1]]).T, sources).limit, 2)


def test_making_errors_independent_keeps_limits_of_sums() -> None:
    generator = np.random.default_rng(1)
    error = Spread.none((3, 4)).widened(generator.uniform(0, 1, (3, 4)))
    sources = sources_of(generator.normal(size=(3, 4)))
    mixed = error.times(generator.normal(size=(4, 4)), sources).widened(
        generator.uniform(0, 1, (3, 4))
    )
    (state,) = independent([mixed], sources)
    matrix = generator.normal(size=(4, 5))
    assert len(state.shared) == 4
    expected = mixed.times(matrix, sources).limit
    np.testing.assert_allclose(state.times(matrix, sources).limit, expected)


@pytest.mark.slow
def test_wide_state_keeps_256_errors_and_doubles_limits() -> None:
    """Ten steps add 600 errors each."""
    generator = np.random.default_rng(2)
    width = 600
    matrix = generator.normal(0, width**-0.5, (width, width))
    sources = sources_of(generator.normal(size=(2, width)))
    own = generator.uniform(0, 1, (2, width))
    state, variance, reach = Spread.none((2, width)), np.zeros((2, width)), np.eye(width)
    for step in range(10):
        (state,) = independent([state.widened(own)], sources, step)
        assert len(state.shared) <= 256
        state = state.times(matrix, sources)
        reach = reach @ matrix
        variance += np.square(own) @ np.square(reach)
    ratio = state.limit / np.sqrt(variance)
    assert ratio.min() > 1.4
    assert ratio.max() < 2.6
    assert ratio.mean() == pytest.approx(2, abs=0.1)


def test_error_that_reaches_a_value_twice_doubles_or_cancels() -> None:
    values = np.array([1.0, 2.0])
    alone = Spread(np.array([3.0, 4.0]), np.zeros((0, 2)))
    common = alone.common(sources_of(values))
    np.testing.assert_allclose((common + common).limit, [6, 8])
    np.testing.assert_array_equal((common + common.scaled(-1.0)).limit, [0, 0])
    np.testing.assert_allclose(common.limit, alone.limit)


def test_errors_that_outgrow_float32_make_any_result_right() -> None:
    value = np.array([1e30, 1e37])
    spread = Spread(value * 1e-4, np.zeros((0, 2)))
    quantity = Quantity(value, ErrorScale(value * 1e6), (spread, Spread.none((2,))))
    scale = quantity.narrowed(terms=4)
    assert scale is not None
    assert scale.sums[0] < 1e33
    assert scale.sums[1] == ANY_RESULT
