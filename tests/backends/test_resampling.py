"""Operators that stretch and shrink tensors, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.backends.numpy.backend import reference_function
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array, DataType

MODES = st.sampled_from(["NEAREST_NEIGHBOR", "LINEAR"])
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=3)
SCALES = st.sampled_from([0.25, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0])


def resampled(
    operator: str, tensor: Array, sizes: list[int], mode: str, *, part: str = "", **more: Any
) -> Any:
    """Return what an operator makes of a tensor, or what the part of it gives."""
    side = "Gradient" if "GRAD" in operator else ""
    function = reference_function(operator, part)
    return function(
        **{f"Input{side}Tensor": tensor},
        **{f"Output{side}Tensor": TensorDesc(DataType[tensor.dtype.name.upper()], tuple(sizes))},
        InterpolationMode=mode,
        **more,
    )


def random(sizes: list[int], seed: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).integers(-100, 100, sizes).astype(dtype)


def centers(rank: int) -> dict[str, Any]:
    return {"InputPixelOffsets": [0.5] * rank, "OutputPixelOffsets": [-0.5] * rank}


@given(SIZES, MODES, st.sampled_from([np.float32, np.float16, np.int8]), st.integers(0, 99))
def test_a_scale_of_1_keeps_the_tensor(sizes: list[int], mode: str, dtype: Any, seed: int) -> None:
    tensor = random(sizes, seed, dtype)
    found = resampled("RESAMPLE", tensor, sizes, mode, Scales=[1.0] * len(sizes))
    np.testing.assert_array_equal(found, tensor)


@given(SIZES, MODES, SCALES, st.integers(0, 99))
def test_resample_takes_the_centers_of_elements(
    sizes: list[int], mode: str, scale: float, seed: int
) -> None:
    tensor, rank = random(sizes, seed), len(sizes)
    outcome = resampled("RESAMPLE", tensor, sizes, mode, Scales=[scale] * rank)
    same = resampled("RESAMPLE1", tensor, sizes, mode, Scales=[scale] * rank, **centers(rank))
    np.testing.assert_array_equal(outcome, same)


@given(SIZES, SCALES, st.booleans(), st.integers(0, 99))
def test_interpolated_values_lie_between_their_neighbours(
    sizes: list[int], scale: float, antialiased: bool, seed: int
) -> None:
    tensor, rank = random(sizes, seed), len(sizes)
    more: dict[str, Any] = {
        "RoundingDirection": "INCREASING",
        "Antialiased": antialiased,
        **centers(rank),
    }
    wanted = [max(1, int(size * scale)) for size in sizes]
    found = resampled("RESAMPLE3", tensor, wanted, "LINEAR", Scales=[scale] * rank, **more)
    assert tensor.min() <= found.min() <= found.max() <= tensor.max()


@pytest.mark.parametrize("size", [8, 16, 32])
def test_antialiasing_averages_where_all_sizes_are_powers_of_two(size: int) -> None:
    tensor = random([size], 1)
    more: dict[str, Any] = {"RoundingDirection": "INCREASING", "Antialiased": True, **centers(1)}
    found = resampled("RESAMPLE3", tensor, [2], "LINEAR", Scales=[2 / size], **more)
    np.testing.assert_array_equal(found, tensor.reshape(2, -1).mean(1))


@given(SIZES, MODES, SCALES, st.sampled_from(["INCREASING", "DECREASING"]), st.integers(0, 99))
def test_gradients_are_the_adjoints_with_exchanged_offsets(
    sizes: list[int], mode: str, scale: float, direction: str, seed: int
) -> None:
    rank = len(sizes)
    wanted = [max(1, int(size * scale)) for size in sizes]
    tensor, gradient = random(sizes, seed, np.float64), random(wanted, seed + 1, np.float64)
    more: dict[str, Any] = {"RoundingDirection": direction, "Scales": [scale] * rank}
    there = resampled("RESAMPLE2", tensor, wanted, mode, **more, **centers(rank))
    offsets: dict[str, Any] = {
        "InputPixelOffsets": [-0.5] * rank,
        "OutputPixelOffsets": [0.5] * rank,
    }
    back = resampled("RESAMPLE_GRAD1", gradient, sizes, mode, **more, **offsets)
    assert np.vdot(there, gradient) == pytest.approx(np.vdot(tensor, back), abs=1e-6)


@pytest.mark.parametrize("scale", [1.5, 2.0])
def test_only_ties_of_rounded_coordinates_may_go_either_way(scale: float) -> None:
    tensor = np.array([1, 2, 3, 4], np.float32)
    low, high = resampled(
        "RESAMPLE", tensor, [6], "NEAREST_NEIGHBOR", part="interval", Scales=[scale]
    )
    # With 1.5 the coordinates of elements 1 and 4 are halves, but 1 / 1.5 has no end in binary.
    assert np.flatnonzero(low != high).tolist() == ([1, 4] if scale == 1.5 else [])


@given(SIZES, MODES, SCALES, st.integers(0, 99))
def test_values_lie_within_their_intervals(
    sizes: list[int], mode: str, scale: float, seed: int
) -> None:
    tensor, rank = random(sizes, seed), len(sizes)
    more: dict[str, Any] = {
        "RoundingDirection": "INCREASING",
        "Scales": [scale] * rank,
        **centers(rank),
    }
    operators = ["RESAMPLE2"] if mode == "LINEAR" else ["RESAMPLE2", "RESAMPLE_GRAD1"]
    for operator in operators:
        found = resampled(operator, tensor, sizes, mode, **more)
        low, high = resampled(operator, tensor, sizes, mode, part="interval", **more)
        assert (low <= found).all()
        assert (found <= high).all()


def test_elements_are_extrapolated_only_for_input_offsets_beyond_0_and_1() -> None:
    tensor = np.array([1, 2, 3, 7], np.float32)
    for offset, extrapolated in ((0.5, False), (0.0, False), (1.0, False), (-0.5, True)):
        offsets = {"InputPixelOffsets": [offset], "OutputPixelOffsets": [0.5]}
        lowest, highest = resampled(
            "RESAMPLE1", tensor, [8], "LINEAR", part="interval", Scales=[2.0], **offsets
        )
        assert bool((highest - lowest > 1e-3).any()) == extrapolated


def test_gradients_are_open_only_around_infinities_and_nan() -> None:
    gradient = np.array([1, 2, 3, 4, 5, 6, 7, np.nan], np.float32)
    offsets = {"InputPixelOffsets": [0.0], "OutputPixelOffsets": [0.0]}
    magnitude = resampled(
        "RESAMPLE_GRAD", gradient, [8], "LINEAR", part="magnitude", Scales=[1.0], **offsets
    )
    assert (magnitude[:5] < 10).all()
    assert (magnitude[-2:] > 1e50).all()
