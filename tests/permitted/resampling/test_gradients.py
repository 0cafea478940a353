"""Gradients of RESAMPLE go to every element that the error of their coordinate permits.

The tested code is in `gradients.py`, `gradient_candidates.py` and `spreading.py` in
`dmlconf/permitted/resampling/`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.resampling.coordinates import UncertainCoordinates
from dmlconf.permitted.resampling.gradient_candidates import linear_interval, nearest_candidates
from dmlconf.precision.allowance import Interval
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import DataType
from tests.permitted.graphs.accepted import accepts, single
from tests.permitted.intervals import hull

GRADIENT = np.array([1, 2, 4], np.float32)


def interval(
    gradient: np.ndarray, coordinates: list[float], size: int, errors: float = 10.0
) -> tuple[list[float], ...]:
    """Return the interval of `size` elements if every coordinate may be off by `errors`."""
    at = UncertainCoordinates(np.array(coordinates), errors=np.full(len(coordinates), errors))
    ends = linear_interval(gradient, [at], TensorDesc(DataType.FLOAT32, (size,)))
    return tuple(end.tolist() for end in ends)


def test_uncertain_coordinates_outside_permit_a_narrow_interval() -> None:
    lowest, highest = interval(GRADIENT, [-50, -40, -30], 2)
    assert 6.999 < lowest[0] <= 7 <= highest[0] < 7.001
    assert (lowest[1], highest[1]) == (0, 0)


def test_uncertain_coordinates_inside_permit_a_wide_interval() -> None:
    lowest, highest = interval(GRADIENT, [-5, -4, -3], 2)
    # The gradients add up to 7, and may count twice at the edge.
    assert 1 < highest[0] - lowest[0] < 15


def test_share_of_each_element_is_as_uncertain_as_the_coordinate() -> None:
    """A gradient of 10 between 0.2 and 0.4 gives 8 to 6 to element 0, and the rest to element 1."""
    lowest, highest = interval(np.array([10], np.float32), [0.3], 3, errors=0.1)
    np.testing.assert_allclose(lowest, [6, 2, 0], atol=1e-5)
    np.testing.assert_allclose(highest, [8, 4, 0], atol=1e-5)


def test_nan_gradient_outside_permits_any_value_along_its_axis() -> None:
    gradient = np.array([np.nan, 2], np.float32)
    assert interval(gradient, [-50, -40], 4) == ([-np.inf] * 4, [np.inf] * 4)


FOUR_ELEMENTS = TensorDesc(DataType.FLOAT32, (4,))


def nearest(gradient: list[float], coordinates: list[float], errors: float) -> list[Interval]:
    """Return the candidates of four elements if every coordinate may be off by `errors`."""
    at = UncertainCoordinates(np.array(coordinates), errors=np.full(len(coordinates), errors))
    return nearest_candidates(np.array(gradient, np.float32), [at], "HALF_UP", FOUR_ELEMENTS)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_gradient_may_belong_to_any_element_within_its_error(value: float) -> None:
    """DirectML was measured to take element 1 at a scale of 2^-23."""
    lowest, highest = hull(nearest([2], [-0.25], 12))
    assert (lowest <= value).all()
    assert (value <= highest).all()


def test_a_gradient_belongs_to_no_element_beyond_its_error() -> None:
    """The coordinate is between -1.25 and 0.75."""
    lowest, highest = hull(nearest([2], [-0.25], 1))
    assert highest.tolist() == [2, 2, 0, 0]
    assert lowest.tolist() == [0, 0, 0, 0]


def test_element_may_get_any_of_the_gradients_near_its_boundaries() -> None:
    """The boundaries of element 1 are 0.5 and 1.5."""
    candidates = nearest([2, 10], [0.5, 1.5], errors=0.1)
    assert sorted(low[1] for low, _ in candidates) == [0, 2, 10, 12]
    assert all(low[1] == high[1] for low, high in candidates)


def test_linear_gradients_reach_only_elements_within_their_error() -> None:
    """The coordinate is between -6 and 14."""
    lowest, highest = interval(np.array([2], np.float32), [4.0], 20)
    assert min(highest[:15]) >= 2
    assert highest[16:] == lowest[16:] == [0] * 4


def test_gradients_that_overflow_beside_infinity_permit_any_result() -> None:
    """Measured: -3e38 - 3e38 + inf is NaN or infinite, by the order of the additions."""
    (candidate,) = nearest([-3e38, -3e38, np.inf], [0, 0, 0], 0)
    assert np.isneginf(candidate[0][0])
    assert np.isposinf(candidate[1][0])
    (certain,) = nearest([-3e38, np.inf], [0, 0], 0)
    assert np.isposinf(certain[0][0])


@pytest.mark.parametrize(
    ("columns", "seed", "reached"), [(160, 35, True), (120, 30, False)], ids=["256", "192"]
)
def test_sums_of_over_192_gradients_may_be_stored_in_float16(
    columns: int, seed: int, reached: bool, tmp_path: Path
) -> None:
    """A graph of DirectML 1.9.1 gives 0.26513671875 with 160 columns; the exact sum is 0.26538.

    An element has 4 * 64 gradients with 160 columns, and 4 * 48 with 120.
    """
    desc = f"""InterpolationMode: LINEAR, Scales: [1, 1, 2, {columns // 5}],
      InputPixelOffsets: [0.5, 0.5, 0.5, 0.5], OutputPixelOffsets: [-0.5, -0.5, -0.5, -0.5],
      InputGradientTensor: {{Sizes: [1, 4, 14, {columns}], DataType: FLOAT16,
                            fill: {{uniform: {{low: -1, high: 1, seed: {seed}}}}}}},
      OutputGradientTensor: {{Sizes: [1, 4, 7, 5], DataType: FLOAT16}}"""
    case = single(tmp_path, "RESAMPLE_GRAD", desc)
    right = evaluate(case)["OutputGradientTensor"]
    steps = np.nextafter(np.nextafter(right, np.float16(0)), np.float16(0))
    first = right.copy()
    first[0, 0, 0, 0] = 0.26513671875 if reached else steps[0, 0, 0, 0]
    assert accepts(case, "OutputGradientTensor", first) is reached
    far = right.copy()
    far[0, 0, 0, 0] += 0.05
    assert not accepts(case, "OutputGradientTensor", far)
