"""RESAMPLE and its gradients use the right elements; results of rounded coordinates are permitted.

The tested code is in `resample.py` and `gradients.py` of `dmlconf/reference/resampling/` and of
`dmlconf/permitted/resampling/`, in `interpolation.py` (`coordinates`) of the former, and in
`candidates.py`, `gradient_candidates.py` and `coordinates.py` of the latter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.resampling.coordinates import uncertain
from dmlconf.reference.resampling.interpolation import coordinates
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import is_permitted
from tests.reference.functions import function_of

MODES = st.sampled_from(["NEAREST_NEIGHBOR", "LINEAR"])
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=3)
SCALES = st.sampled_from([0.25, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0])


def resample(
    operator: str, tensor: Array, sizes: list[int], mode: str, *, part: str = "", **more: Any
) -> Any:
    """Return the result for a tensor or, given a `part` such as `interval`, what is permitted."""
    side = "Gradient" if "GRAD" in operator else ""
    function = function_of(operator, part)
    return function(
        **{f"Input{side}Tensor": tensor},
        **{f"Output{side}Tensor": TensorDesc(DataType[tensor.dtype.name.upper()], tuple(sizes))},
        InterpolationMode=mode,
        **more,
    )


def random(sizes: list[int], seed: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).integers(-100, 100, sizes).astype(dtype)


def centers(rank: int) -> dict[str, Any]:
    """Return the offsets with which coordinates are centers of elements."""
    return {"InputPixelOffsets": [0.5] * rank, "OutputPixelOffsets": [-0.5] * rank}


@given(SIZES, MODES, st.sampled_from([np.float32, np.float16, np.int8]), st.integers(0, 99))
def test_a_scale_of_1_changes_nothing(sizes: list[int], mode: str, dtype: Any, seed: int) -> None:
    tensor = random(sizes, seed, dtype)
    actual = resample("RESAMPLE", tensor, sizes, mode, Scales=[1.0] * len(sizes))
    np.testing.assert_array_equal(actual, tensor)


@given(SIZES, MODES, SCALES, st.integers(0, 99))
def test_resample_equals_resample1_with_offsets_of_centers(
    sizes: list[int], mode: str, scale: float, seed: int
) -> None:
    tensor, rank = random(sizes, seed), len(sizes)
    outcome = resample("RESAMPLE", tensor, sizes, mode, Scales=[scale] * rank)
    same = resample("RESAMPLE1", tensor, sizes, mode, Scales=[scale] * rank, **centers(rank))
    np.testing.assert_array_equal(outcome, same)


@given(SIZES, SCALES, st.booleans(), st.integers(0, 99))
def test_interpolated_values_lie_between_the_extremes(
    sizes: list[int], scale: float, antialiased: bool, seed: int
) -> None:
    tensor, rank = random(sizes, seed), len(sizes)
    more: dict[str, Any] = {
        "RoundingDirection": "INCREASING",
        "Antialiased": antialiased,
        **centers(rank),
    }
    wanted = [max(1, int(size * scale)) for size in sizes]
    actual = resample("RESAMPLE3", tensor, wanted, "LINEAR", Scales=[scale] * rank, **more)
    assert tensor.min() <= actual.min() <= actual.max() <= tensor.max()


@pytest.mark.parametrize("size", [8, 16, 32])
def test_antialiasing_to_two_elements_gives_means_of_halves(size: int) -> None:
    tensor = random([size], 1)
    more: dict[str, Any] = {"RoundingDirection": "INCREASING", "Antialiased": True, **centers(1)}
    actual = resample("RESAMPLE3", tensor, [2], "LINEAR", Scales=[2 / size], **more)
    np.testing.assert_array_equal(actual, tensor.reshape(2, -1).mean(1))


@given(SIZES, MODES, SCALES, st.sampled_from(["INCREASING", "DECREASING"]), st.integers(0, 99))
def test_resample_grad_is_the_adjoint_of_resample(
    sizes: list[int], mode: str, scale: float, direction: str, seed: int
) -> None:
    """sum(resampled * gradient) = sum(tensor * of_tensor)."""
    rank = len(sizes)
    wanted = [max(1, int(size * scale)) for size in sizes]
    tensor, gradient = random(sizes, seed, np.float64), random(wanted, seed + 1, np.float64)
    more: dict[str, Any] = {"RoundingDirection": direction, "Scales": [scale] * rank}
    resampled = resample("RESAMPLE2", tensor, wanted, mode, **more, **centers(rank))
    offsets: dict[str, Any] = {
        "InputPixelOffsets": [-0.5] * rank,
        "OutputPixelOffsets": [0.5] * rank,
    }
    of_tensor = resample("RESAMPLE_GRAD1", gradient, sizes, mode, **more, **offsets)
    assert np.vdot(resampled, gradient) == pytest.approx(np.vdot(tensor, of_tensor), abs=1e-6)


def permitted_elements(
    operator: str, tensor: Array, actual: Array, mode: str, **more: Any
) -> Array:
    sizes = list(actual.shape)
    right = resample(operator, tensor, sizes, mode, **more)
    candidates = resample(operator, tensor, sizes, mode, part="candidates", **more)
    return is_permitted(actual, right, *candidates)


def interpolated(tensor: Array, at: Array) -> Array:
    return np.interp(at, np.arange(len(tensor)), tensor).astype(tensor.dtype)


@pytest.mark.parametrize("scale", [1.5, 2.0])
def test_ties_of_rounded_coordinates_may_go_either_way(scale: float) -> None:
    tensor = np.array([1, 2, 4, 8], np.float32)
    at = (np.arange(6) + 0.5) / scale - 0.5
    for rounding in (np.ceil(at - 0.5), np.floor(at + 0.5)):
        driver = tensor[np.clip(rounding, 0, 3).astype(int)]
        # With 1.5, the coordinates of elements 1 and 4 are 0.5 and 2.5, up to rounding.
        right = permitted_elements("RESAMPLE", tensor, driver, "NEAREST_NEIGHBOR", Scales=[scale])
        assert right.all()


def test_value_between_the_elements_of_a_tie_is_wrong() -> None:
    tensor = np.array([1, 2, 4, 8], np.float32)
    driver = interpolated(tensor, (np.arange(6) + 0.5) / 1.5 - 0.5)
    nearest = resample("RESAMPLE", tensor, [6], "NEAREST_NEIGHBOR", Scales=[1.5])
    driver = np.where(np.isin(np.arange(6), [1, 4]), driver, nearest)
    right = permitted_elements("RESAMPLE", tensor, driver, "NEAREST_NEIGHBOR", Scales=[1.5])
    assert right.tolist() == [True, False, True, True, False, True]


def test_coordinate_far_from_boundaries_has_one_right_element() -> None:
    tensor = np.array([1, 2, 4, 8], np.float32)
    more: dict[str, Any] = {"RoundingDirection": "DECREASING", "Scales": [0.75], **centers(1)}
    floor = permitted_elements(
        "RESAMPLE2", tensor, np.array([1, 2, 4], np.float32), "NEAREST_NEIGHBOR", **more
    )
    ceil = permitted_elements(
        "RESAMPLE2", tensor, np.array([2, 4, 8], np.float32), "NEAREST_NEIGHBOR", **more
    )
    assert floor.all()
    assert not ceil.any()


def test_tie_of_nan_and_a_number_permits_both() -> None:
    tensor = np.array([np.nan, 2, 4, 8], np.float32)
    for value, right in ((np.nan, True), (2.0, True), (1.0, False), (np.inf, False)):
        driver = resample("RESAMPLE", tensor, [6], "NEAREST_NEIGHBOR", Scales=[1.5])
        driver[1] = value
        actual = permitted_elements("RESAMPLE", tensor, driver, "NEAREST_NEIGHBOR", Scales=[1.5])
        assert actual.tolist() == [True, right, True, True, True, True]


@pytest.mark.parametrize(("scale", "exact"), [(2.0, True), (4.0, True), (3.0, False)])
def test_interpolated_integers_are_exact_for_power_of_two_scales(scale: float, exact: bool) -> None:
    tensor = random([2, 5], 1)
    sizes = [2, int(5 * scale)]
    right = resample("RESAMPLE", tensor, sizes, "LINEAR", Scales=[1.0, scale])
    driver = np.nextafter(right, np.float32(np.inf))
    permitted = permitted_elements("RESAMPLE", tensor, driver, "LINEAR", Scales=[1.0, scale])
    between = right != resample("RESAMPLE", tensor, sizes, "NEAREST_NEIGHBOR", Scales=[1.0, scale])
    assert permitted[between].any() != exact
    assert not exact or not permitted.any()


def test_elements_with_neighbours_of_weight_0_are_exact() -> None:
    tensor = np.random.default_rng(1).uniform(-1, 1, 4).astype(np.float32)
    offsets: dict[str, Any] = {"InputPixelOffsets": [0.0], "OutputPixelOffsets": [0.0]}
    right = resample("RESAMPLE1", tensor, [8], "LINEAR", Scales=[2.0], **offsets)
    driver = np.nextafter(right, np.float32(np.inf))
    permitted = permitted_elements("RESAMPLE1", tensor, driver, "LINEAR", Scales=[2.0], **offsets)
    assert not permitted[::2].any()
    assert permitted[1:-1:2].all()


@pytest.mark.slow
@given(SIZES, MODES, SCALES, st.integers(0, 99))
def test_results_of_the_reference_are_among_their_candidates(
    sizes: list[int], mode: str, scale: float, seed: int
) -> None:
    tensor, rank = random(sizes, seed), len(sizes)
    more: dict[str, Any] = {
        "RoundingDirection": "INCREASING",
        "Scales": [scale] * rank,
        **centers(rank),
    }
    for operator in ("RESAMPLE2", "RESAMPLE_GRAD1"):
        actual = resample(operator, tensor, sizes, mode, **more)
        candidates = resample(operator, tensor, sizes, mode, part="candidates", **more)
        within = [(low <= actual) & (actual <= high) for low, high in candidates]
        assert np.logical_or.reduce(within).all()


@pytest.mark.slow
@given(st.sampled_from([1.5, 3.0, 0.7, 5.0]), st.integers(0, 99), st.booleans())
def test_coordinates_may_be_quotients_or_products(
    scale: float, seed: int, reciprocal: bool
) -> None:
    tensor = np.random.default_rng(seed).uniform(-1, 1, 6).astype(np.float32)
    indices, one = np.arange(9, dtype=np.float32) + np.float32(0.5), np.float32(scale)
    at = (indices * (1 / one) if reciprocal else indices / one) - np.float32(0.5)
    at = np.clip(at, 0, 5)
    first = np.floor(at).astype(int)
    second, weight = np.minimum(first + 1, 5), at - np.floor(at)
    for driver in (
        tensor[first] * (1 - weight) + tensor[second] * weight,
        tensor[first] + weight * (tensor[second] - tensor[first]),
    ):
        assert permitted_elements("RESAMPLE", tensor, driver, "LINEAR", Scales=[scale]).all()


def test_only_input_offsets_outside_0_to_1_permit_extrapolation() -> None:
    tensor = np.array([1, 2, 3, 7], np.float32)
    for offset, extrapolated in (
        (0.5, False),
        (0.0, False),
        (1.0, False),
        (-0.5, True),
        (1.5, True),
    ):
        offsets = {"InputPixelOffsets": [offset], "OutputPixelOffsets": [0.5]}
        candidates = resample(
            "RESAMPLE1", tensor, [8], "LINEAR", part="candidates", Scales=[2.0], **offsets
        )
        assert (len(candidates) > 1) == extrapolated


def test_value_between_two_extrapolated_lines_is_wrong() -> None:
    tensor = np.array([1, 2, 4, 32, 128], np.float32)
    offsets: dict[str, Any] = {"InputPixelOffsets": [-2.0], "OutputPixelOffsets": [0.5]}
    # At coordinate 2.5, elements 2 and 3 give 18, and the line through elements 0 and 1 gives 3.5.
    for values, right in (
        ([3.0, 18.0], True),
        ([2.5, 18.0], False),
        ([3.0, 3.5], True),
        ([3.0, 10.0], False),
    ):
        driver = np.array([values[0], values[1], 80, 128], np.float32)
        expected = resample("RESAMPLE1", tensor, [4], "LINEAR", Scales=[1.0], **offsets)
        assert expected.tolist() == [3, 18, 80, 128]
        actual = permitted_elements("RESAMPLE1", tensor, driver, "LINEAR", Scales=[1.0], **offsets)
        assert actual.all() == right


def test_gradient_near_a_boundary_is_not_divided() -> None:
    gradient = np.array([1, 10, 100, 1000], np.float32)
    more: dict[str, Any] = {"RoundingDirection": "DECREASING", "Scales": [3.0]}
    offsets = {"InputPixelOffsets": [0.0], "OutputPixelOffsets": [0.0]}
    # The last gradient is at 3 / 3, which rounding may move below 1.
    for values, right in (
        ([111.0, 1000.0], [True, True]),
        ([1111.0, 0.0], [True, True]),
        ([611.0, 500.0], [False, False]),
        ([11.0, 1100.0], [False, False]),
    ):
        driver = np.array(values, np.float32)
        actual = permitted_elements(
            "RESAMPLE_GRAD1", gradient, driver, "NEAREST_NEIGHBOR", **more, **offsets
        )
        assert actual.tolist() == right


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_most_elements_of_wrong_linear_gradients_are_refused(dtype: Any) -> None:
    gradient = np.random.default_rng(3).uniform(-4, 4, (12, 15)).astype(dtype)
    more: dict[str, Any] = {"RoundingDirection": "INCREASING", "Scales": [2.4, 3.0]}
    offsets = {"InputPixelOffsets": [-0.5, -0.5], "OutputPixelOffsets": [0.5, 0.5]}
    fields: dict[str, Any] = {**more, **offsets}
    right = resample("RESAMPLE_GRAD1", gradient, [5, 5], "LINEAR", **fields)
    low, high = resample("RESAMPLE_GRAD1", gradient, [5, 5], "LINEAR", part="interval", **fields)
    assert ((low <= right) & (right <= high)).all()
    # Rounded coordinates widen the intervals, and FLOAT16 rounds results.
    step = float(np.finfo(dtype).eps)
    assert (np.subtract(high, low, dtype=np.float64) < 6e-4 + 3 * step * np.abs(right)).all()
    for wrong in (np.zeros_like(right), right * dtype(1.01), right[::-1]):
        assert ((wrong < low) | (high < wrong)).mean() > 0.75


@given(st.integers(0, 99), st.sampled_from([1.5, 2.4, 3.0, 0.7]))
def test_linear_gradients_may_be_added_in_any_order(seed: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    gradient = generator.uniform(-4, 4, 12).astype(np.float32)
    indices, one = np.arange(12, dtype=np.float32) + np.float32(0.5), np.float32(scale)
    at = np.clip(indices * (1 / one) - np.float32(0.5), 0, 4)
    driver = np.zeros(5, np.float32)
    for index in generator.permutation(12):
        first = int(at[index])
        weight = at[index] - np.float32(first)
        driver[first] += gradient[index] * (1 - weight)
        driver[min(first + 1, 4)] += gradient[index] * weight
    more: dict[str, Any] = {"RoundingDirection": "INCREASING", "Scales": [scale]}
    offsets = {"InputPixelOffsets": [-0.5], "OutputPixelOffsets": [0.5]}
    assert permitted_elements("RESAMPLE_GRAD1", gradient, driver, "LINEAR", **more, **offsets).all()


def test_gradients_are_open_only_around_nan() -> None:
    gradient = np.array([1, 2, 3, 4, 5, 6, 7, np.nan], np.float32)
    offsets = {"InputPixelOffsets": [0.0], "OutputPixelOffsets": [0.0]}
    low, high = resample(
        "RESAMPLE_GRAD", gradient, [8], "LINEAR", part="interval", Scales=[1.0], **offsets
    )
    assert (low[:5] == high[:5]).all()
    assert np.isinf(low[-2:]).all()
    assert np.isinf(high[-2:]).all()


def test_coordinate_is_certain_only_without_rounding() -> None:
    single, scale = np.float32, np.float32(2.0**-23)
    # FLOAT32 rounds this sum, 16777215.5.
    offsets = single(2.5) / scale + single(-4194304.5)
    in_other_order = single(2) / scale - offsets
    at = uncertain(coordinates(3, 2.0**-23, -4194304.5, 2.5))
    assert at.values[2] == 0.5
    assert in_other_order == 0
    assert at.errors[2] >= 0.5
    assert not uncertain(coordinates(8, 0.25, 0.5, -0.5)).errors.any()


@given(st.integers(-9, 9), st.integers(-64, 64), st.integers(-64, 64), st.integers(1, 40))
def test_two_orders_of_operations_give_each_certain_coordinate(
    exponent: int, shift: int, offset: int, count: int
) -> None:
    scale, before, behind = 2.0**exponent, shift / 8, offset / 16
    at = uncertain(coordinates(count, scale, behind, before))
    indices = np.arange(count, dtype=np.float32)
    one, other, last = map(np.float32, (scale, before, behind))
    certain = at.errors == 0
    assume(certain.any())
    for values in ((indices - other) / one - last, indices / one - (other / one + last)):
        np.testing.assert_array_equal(values[certain], at.values[certain])
