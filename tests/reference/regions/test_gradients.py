"""ROI_ALIGN_GRAD is the adjoint of ROI_ALIGN1; errors of coordinates widen its intervals.

The tested code is in `dmlconf/reference/regions/gradients.py`,
`dmlconf/reference/regions/slopes.py`, `dmlconf/permitted/regions/gradients.py` and
`dmlconf/permitted/regions/shares.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.regions.shares import axis_shares
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import function_of

SEEDS = st.integers(0, 2**32 - 1)
FUNCTIONS = st.sampled_from(["AVERAGE", "MAX"])
MODES = st.sampled_from(["NEAREST_NEIGHBOR", "LINEAR"])


def desc(array: Array) -> TensorDesc:
    return TensorDesc(DataType.FLOAT64, array.shape)


@given(SEEDS, FUNCTIONS, MODES, st.integers(1, 3), st.booleans())
def test_input_gradient_is_adjoint_of_roi_align1(
    seed: int, function: str, mode: str, samples: int, corners: bool
) -> None:
    """sum(InputGradientTensor * outputs) = sum(OutputGradientTensor * InputTensor)."""
    random = np.random.default_rng(seed)
    values = random.uniform(-9, 9, random.integers(1, 6, 4))
    gradients = random.uniform(-9, 9, (3, values.shape[1], *random.integers(1, 4, 2)))
    fields: dict[str, Any] = {
        "ROITensor": random.uniform(-2, 6, (3, 4)),
        "BatchIndicesTensor": random.integers(0, len(values), 3).astype(np.uint32),
        "ReductionFunction": function,
        "InterpolationMode": mode,
        "SpatialScaleX": 1.0,
        "SpatialScaleY": 0.5,
        "InputPixelOffset": 0.5,
        "OutputPixelOffset": -0.5,
        "MinimumSamplesPerOutput": samples,
        "MaximumSamplesPerOutput": 3,
        "AlignRegionsToCorners": corners,
    }
    outputs = reference_function("ROI_ALIGN1")(
        InputTensor=values, OutputTensor=desc(gradients), OutOfBoundsInputValue=0.0, **fields
    )
    (actual,) = reference_function("ROI_ALIGN_GRAD")(
        InputTensor=values,
        InputGradientTensor=gradients,
        OutputGradientTensor=desc(values),
        OutputROIGradientTensor=None,
        **fields,
    )
    np.testing.assert_allclose((actual * values).sum(), (gradients * outputs).sum(), atol=1e-9)


def plane_arguments(gradients: Array, **fields: Any) -> Any:
    """Return arguments of ROI_ALIGN_GRAD, by default for a plane 3 x - 2 y, 16 wide and 8 high."""
    y, x = np.mgrid[0:8, 0:16]
    arguments: dict[str, Any] = {
        "InputTensor": (3.0 * x - 2.0 * y)[np.newaxis, np.newaxis],
        "InputGradientTensor": gradients,
        "ROITensor": np.array([[2, 1, 13, 6]], np.float32),
        "BatchIndicesTensor": np.array([0], np.uint32),
        "OutputGradientTensor": None,
        "OutputROIGradientTensor": TensorDesc(DataType.FLOAT32, (1, 4)),
        "ReductionFunction": "AVERAGE",
        "InterpolationMode": "LINEAR",
        "SpatialScaleX": 1.0,
        "SpatialScaleY": 1.0,
        "InputPixelOffset": 0.5,
        "OutputPixelOffset": -0.5,
        "MinimumSamplesPerOutput": 2,
        "MaximumSamplesPerOutput": 2,
        "AlignRegionsToCorners": False,
        **fields,
    }
    return arguments


@given(SEEDS, FUNCTIONS, MODES)
def test_start_and_end_of_a_region_share_its_gradient(seed: int, function: str, mode: str) -> None:
    gradients = np.random.default_rng(seed).integers(-9, 10, (1, 1, 3, 4)).astype(np.float64)
    fields = plane_arguments(gradients, ReductionFunction=function, InterpolationMode=mode)
    (actual,) = reference_function("ROI_ALIGN_GRAD")(**fields)
    # Measured: the gradient of a region is the slope times the size of the input, 16 or 8.
    across = 3 * 16 * (gradients * np.arange(4) / 8).sum()
    down = -2 * 8 * (gradients * np.arange(3)[:, np.newaxis] / 6).sum()
    whole = 3 * 16 * gradients.sum() - across, -2 * 8 * gradients.sum() - down
    np.testing.assert_allclose(actual, [[*whole, across, down]], atol=1e-3)


@pytest.mark.parametrize(("corners", "at"), [(False, 0.5), (True, 1.0)])
def test_aligned_corners_make_a_region_one_element_smaller(corners: bool, at: float) -> None:
    """`at` is the position of the second sample in the region, whose end is at 1."""
    gradients = np.array([0.0, 1.0]).reshape(1, 1, 1, 2)
    single = {"MinimumSamplesPerOutput": 1, "MaximumSamplesPerOutput": 1}
    fields = plane_arguments(gradients, AlignRegionsToCorners=corners, **single)
    fields |= {"InputPixelOffset": 0.0, "OutputPixelOffset": 0.0}
    (actual,) = reference_function("ROI_ALIGN_GRAD")(**fields)
    width = 15 if corners else 16
    assert actual[0, 0::2].tolist() == [3 * width * (1 - at), 3 * width * at]


@pytest.mark.parametrize("gradient", [4.0, -4.0])
def test_sample_near_boundary_makes_both_elements_uncertain(gradient: float) -> None:
    """The first sample is at 0.5 + 0.5 * (3.5 - 0.5) / 3 - 0.5, which rounding may move."""
    fields = plane_arguments(np.array([gradient, 0.0, 0.0]).reshape(1, 1, 1, 3))
    fields |= {
        "InputTensor": None,
        "ROITensor": np.array([[0.5, 0, 3.5, 1]], np.float32),
        "OutputGradientTensor": TensorDesc(DataType.FLOAT32, (1, 1, 1, 4)),
        "OutputROIGradientTensor": None,
        "InterpolationMode": "NEAREST_NEIGHBOR",
        "MinimumSamplesPerOutput": 1,
        "MaximumSamplesPerOutput": 1,
    }
    ((least, most),) = function_of("ROI_ALIGN_GRAD", "interval")(**fields)
    low, high = sorted((0.0, gradient))
    for element in range(2):
        assert low - 1e-4 < least.ravel()[element] <= low
        assert high <= most.ravel()[element] < high + 1e-4
    assert least.ravel()[2:].tolist() == most.ravel()[2:].tolist() == [0, 0]


def test_shares_include_all_possible_coordinates() -> None:
    """A sample between 2.85 and 3.05 gives element 3 a share from 0.85 to 1."""
    shares = list(axis_shares(np.array([2.95]), np.array([0.1]), size=5, linear=True))
    assert [share.index.item() for share in shares] == [2, 3, 4]
    ends = [(share.least.item(), share.most.item()) for share in shares]
    np.testing.assert_allclose(ends, [(0, 0.15), (0.85, 1), (0, 0.05)], atol=1e-9)


def test_infinite_gradient_of_one_region_leaves_others_unchanged() -> None:
    fields = plane_arguments(
        np.full((2, 1, 1, 1), 2.0, np.float32),
        ROITensor=np.array([[2.6, 1.2, 3.1, 1.9], [2.6, -5.7, 3.1, -5.1]], np.float32),
        BatchIndicesTensor=np.array([0, 0], np.uint32),
        OutputGradientTensor=TensorDesc(DataType.FLOAT32, (1, 1, 8, 16)),
        OutputROIGradientTensor=None,
    )
    interval = function_of("ROI_ALIGN_GRAD", "interval")
    ((lowest, highest),) = interval(**fields)
    fields["InputGradientTensor"][1] = np.inf
    ((least, most),) = interval(**fields)
    others = np.isfinite(least)
    assert others[0, 0, 1].all()
    np.testing.assert_array_equal(least[others], lowest[others])
    np.testing.assert_array_equal(most[others], highest[others])


def interval_width(fields: dict[str, Any]) -> Array:
    ((least, most),) = function_of("ROI_ALIGN_GRAD", "interval")(**fields)
    width: Array = most.astype(np.float64) - least
    return width


@pytest.mark.parametrize("begin", [2.9, 3.0, 3.1])
def test_interval_is_narrow_where_a_sample_is_near_an_element(begin: float) -> None:
    """FLOAT32 rounds the products of corners and SpatialScaleX."""
    fields = plane_arguments(
        np.full((1, 1, 1, 3), 8.0, np.float32),
        InputTensor=None,
        ROITensor=np.array([[begin, 2.0, begin + 6, 3.0]], np.float32),
        OutputGradientTensor=TensorDesc(DataType.FLOAT32, (1, 1, 8, 16)),
        OutputROIGradientTensor=None,
        SpatialScaleX=0.7,
    )
    assert 0 < interval_width(fields).max() < 1e-3


def test_error_of_y_cancels_if_gradients_alternate() -> None:
    """An error of y changes all slopes along x in the same direction."""
    image = np.outer(np.arange(8.0), np.arange(16.0) ** 2)[np.newaxis, np.newaxis]
    region = np.array([[1001.3, 1001.1, 1009.7, 1004.9]], np.float32)  # Large errors.
    widths = [
        interval_width(
            plane_arguments(
                np.array([4.0, 4.0 * sign, 4.0, 4.0 * sign]).reshape(1, 1, 1, 4),
                InputTensor=image,
                ROITensor=region,
                InputPixelOffset=1000.5,
                MinimumSamplesPerOutput=3,
                MaximumSamplesPerOutput=3,
            )
        )[0, 2]
        for sign in (1, -1)
    ]
    # Errors of x do not cancel.
    assert widths[1] < 0.75 * widths[0]


def test_the_gradient_of_another_region_cancels_no_error() -> None:
    single_region = plane_arguments(np.full((1, 1, 1, 1), 4.0, np.float32))
    single_region |= {
        "InputTensor": None,
        "ROITensor": np.array([[1.3, 1.1, 9.7, 4.9]], np.float32),
        "OutputGradientTensor": TensorDesc(DataType.FLOAT32, (1, 1, 8, 16)),
        "OutputROIGradientTensor": None,
        "SpatialScaleX": 0.7,
    }
    two_regions = {
        **single_region,
        "InputGradientTensor": np.array([4.0, -4.0], np.float32).reshape(2, 1, 1, 1),
        "ROITensor": single_region["ROITensor"].repeat(2, axis=0),
        "BatchIndicesTensor": np.array([0, 0], np.uint32),
    }
    assert (interval_width(two_regions) >= 2 * interval_width(single_region)).all()
