"""Pooling agrees with loops over the elements in each window, and gradients are its adjoints.

The tested code is in `pooling.py` and `max_pooling.py` of `dmlconf/reference/windows/`, and in
`dmlconf/permitted/windows/max_pooling.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import function_of

LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Window:
    """A window and what it slides over, one number for each spatial dimension."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    window: tuple[int, ...]
    start: tuple[int, ...]
    dilations: tuple[int, ...]
    positions: tuple[int, ...]

    def attributes(self, *, dilated: bool = True) -> dict[str, Any]:
        result: dict[str, Any] = {
            "Strides": self.strides,
            "WindowSize": self.window,
            "StartPadding": self.start,
            "EndPadding": self.start,
        }
        return {**result, "Dilations": self.dilations} if dilated else result

    def seen_coordinates(self, position: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the coordinates that the window sees, in order, without padding."""
        seen = (
            tuple(
                at * stride - start + step * dilation
                for at, stride, start, step, dilation in zip(
                    position, self.strides, self.start, element, self.dilations, strict=True
                )
            )
            for element in product(*map(range, self.window))
        )
        return [
            coordinates
            for coordinates in seen
            if all(0 <= at < size for at, size in zip(coordinates, self.sizes, strict=True))
        ]


def pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


WINDOWS = st.builds(
    Window, pairs(1, 5), pairs(0, 3), pairs(1, 3), pairs(0, 4), pairs(1, 3), pairs(1, 4)
)
SEEDS = st.integers(0, 2**32 - 1)


def tensor(sizes: tuple[int, ...], data_type: DataType = DataType.FLOAT32) -> TensorDesc:
    return TensorDesc(data_type, (2, 3, *sizes))


def drawn(sizes: tuple[int, ...], seed: int) -> Array:
    whole = np.random.default_rng(seed).integers(-4, 5, (2, 3, *sizes))
    return whole.astype(np.float32)


@given(WINDOWS, SEEDS)
def test_max_pooling_finds_the_first_maximum_of_windows(window: Window, seed: int) -> None:
    values = drawn(window.sizes, seed)
    indices = np.arange(values.size).reshape(values.shape)
    actual, chosen = reference_function("MAX_POOLING2")(
        InputTensor=values,
        OutputTensor=tensor(window.positions),
        OutputIndicesTensor=tensor(window.positions, DataType.UINT32),
        **window.attributes(),
    )
    for position in np.ndindex(2, 3, *window.positions):
        seen = [(*position[:2], *at) for at in window.seen_coordinates(position[2:])]
        best = max(seen, key=lambda at: values[at], default=None)
        expected = (LOWEST, 0) if best is None else (values[best], indices[best])
        assert (actual[position], chosen[position]) == expected


@pytest.mark.slow
@given(WINDOWS, SEEDS, st.booleans())
def test_average_pooling_counts_padding_only_if_padding_is_included(
    window: Window, seed: int, included: bool
) -> None:
    values = drawn(window.sizes, seed)
    actual = reference_function("AVERAGE_POOLING1")(
        InputTensor=values,
        OutputTensor=tensor(window.positions, DataType.FLOAT64),
        IncludePadding=included,
        **window.attributes(),
    )
    for position in np.ndindex(2, 3, *window.positions):
        seen = [float(values[(*position[:2], *at)]) for at in window.seen_coordinates(position[2:])]
        count = int(np.prod(window.window)) if included else len(seen)
        expected = sum(seen) / count if count else np.nan
        np.testing.assert_allclose(actual[position], expected, rtol=1e-15)


@given(WINDOWS, SEEDS, st.integers(1, 4))
def test_lp_pooling_takes_the_root_of_the_sum_of_powers(
    window: Window, seed: int, exponent: int
) -> None:
    values = drawn(window.sizes, seed)
    actual = reference_function("LP_POOLING1")(
        InputTensor=values,
        OutputTensor=tensor(window.positions, DataType.FLOAT64),
        P=exponent,
        **window.attributes(),
    )
    for position in np.ndindex(2, 3, *window.positions):
        total = sum(
            abs(values[(*position[:2], *at)]) ** exponent
            for at in window.seen_coordinates(position[2:])
        )
        np.testing.assert_allclose(actual[position] ** exponent, total, rtol=1e-12)


def assert_adjoint(
    window: Window, pooled: Array, gradients: Array, spread: Array, values: Array
) -> None:
    """Check sum(gradients * pooled) = sum(spread * values), without windows of padding only."""
    visible = np.array([bool(window.seen_coordinates(at)) for at in np.ndindex(*window.positions)])
    kept = np.where(visible.reshape(window.positions), gradients * pooled, 0)
    np.testing.assert_allclose((spread * values).sum(), kept.sum(), atol=1e-6)


@given(WINDOWS, SEEDS)
def test_max_pooling_grad_is_the_adjoint_of_max_pooling(window: Window, seed: int) -> None:
    values, gradients = drawn(window.sizes, seed), drawn(window.positions, seed + 1)
    maxima = reference_function("MAX_POOLING2")(
        InputTensor=values,
        OutputTensor=tensor(window.positions, DataType.FLOAT64),
        OutputIndicesTensor=None,
        **window.attributes(),
    )[0]
    spread = reference_function("MAX_POOLING_GRAD")(
        InputTensor=values,
        InputGradientTensor=gradients,
        OutputGradientTensor=tensor(window.sizes, DataType.FLOAT64),
        **window.attributes(),
    )
    assert_adjoint(window, maxima, gradients, spread, values)


@given(WINDOWS, SEEDS, st.booleans())
def test_average_pooling_grad_is_the_adjoint_of_average_pooling(
    window: Window, seed: int, included: bool
) -> None:
    values, gradients = drawn(window.sizes, seed), drawn(window.positions, seed + 1)
    undilated = window.attributes(dilated=False)
    means = reference_function("AVERAGE_POOLING")(
        InputTensor=values,
        OutputTensor=tensor(window.positions, DataType.FLOAT64),
        IncludePadding=included,
        **undilated,
    )
    spread = reference_function("AVERAGE_POOLING_GRAD")(
        InputGradientTensor=gradients,
        OutputGradientTensor=tensor(window.sizes, DataType.FLOAT64),
        IncludePadding=included,
        # No window reaches beyond this padding.
        **undilated | {"EndPadding": (99, 99)},
    )
    plain = replace(window, dilations=(1, 1))
    assert_adjoint(plain, means, gradients, spread, values)


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
def test_maximum_of_nan_and_minus_infinity_may_be_lowest(
    data_type: DataType,
) -> None:
    values = np.array([np.nan, -np.inf, np.nan, 1], data_type.dtype).reshape(1, 1, 1, 4)
    arguments = {
        "InputTensor": values,
        "OutputTensor": TensorDesc(data_type, (1, 1, 1, 3)),
        "Strides": (1, 1),
        "WindowSize": (1, 2),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
    }
    lowest = float(np.finfo(data_type.dtype).min)
    (actual,) = reference_function("MAX_POOLING")(**arguments)
    assert actual.ravel().tolist() == [lowest, lowest, 1]
    ((least, most),) = function_of("MAX_POOLING", "interval")(**arguments)
    assert least.ravel().tolist() == [-np.inf, -np.inf, 1]
    assert most.ravel().tolist() == [lowest, lowest, 1]
    # A second interval would permit NaN.
    assert len(function_of("MAX_POOLING", "candidates")(**arguments)[0]) == 1


def test_a_window_with_only_nan_may_give_nan() -> None:
    values = np.array([np.nan, np.nan, 3], np.float32).reshape(1, 1, 1, 3)
    arguments = {
        "InputTensor": values,
        "OutputTensor": TensorDesc(DataType.FLOAT32, (1, 1, 1, 3)),
        "Strides": (1, 1),
        "WindowSize": (1, 2),
        "StartPadding": (0, 1),
        "EndPadding": (0, 0),
    }
    (candidates,) = function_of("MAX_POOLING", "candidates")(**arguments)
    ends = [[end.ravel().tolist() for end in interval] for interval in candidates]
    assert ends[0] == [[-np.inf, -np.inf, 3], [LOWEST, LOWEST, 3]]
    assert [str(number) for number in ends[1][0]] == ["nan", "nan", "3.0"]


@pytest.mark.parametrize(("end", "divisor"), [(0, 5), (1, 6), (2, 7), (3, 7)])
def test_average_gradient_ignores_elements_beyond_the_padding(end: int, divisor: int) -> None:
    """DirectML 1.15.4 divides by the number of a window's elements before the padding's end."""
    actual = reference_function("AVERAGE_POOLING_GRAD")(
        InputGradientTensor=np.array([[[[0, 0, 210]]]], np.float32),
        OutputGradientTensor=TensorDesc(DataType.FLOAT32, (1, 1, 1, 9)),
        Strides=(1, 2),
        WindowSize=(1, 7),
        StartPadding=(0, 0),
        EndPadding=(0, end),
        IncludePadding=True,
    )
    np.testing.assert_array_equal(actual.ravel(), [0] * 4 + [210 / divisor] * 5)
