"""ROI_ALIGN_GRAD permits several results for special numbers and samples whose order is in doubt.

The tested code is in `dmlconf/permitted/regions/gradients.py` and
`dmlconf/permitted/regions/parts.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.permitted.graphs.accepted import accepts, single

REGION = """InputGradientTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [.inf]},
  ROITensor: {Sizes: [1, 4], DataType: FLOAT32, values: [-0.8, -0.8, -0.8, -0.8]},
  BatchIndicesTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputGradientTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT32},
  ReductionFunction: AVERAGE, InterpolationMode: LINEAR, SpatialScaleX: 1, SpatialScaleY: 1,
  InputPixelOffset: 0, OutputPixelOffset: 0, MinimumSamplesPerOutput: 1,
  MaximumSamplesPerOutput: 1, AlignRegionsToCorners: false"""


def test_0_times_an_infinite_gradient_may_be_nan_or_0(tmp_path: Path) -> None:
    """Element 1 gets 0 * infinity, which was measured as NaN and as 0."""
    case = single(tmp_path, "ROI_ALIGN_GRAD", REGION)
    for second in (np.nan, 0.0):
        assert accepts(case, "OutputGradientTensor", [np.inf, second, 0])
    assert not accepts(case, "OutputGradientTensor", [np.inf, 0, 1])


@pytest.mark.parametrize(("offset", "any_result"), [(".nan", True), ("0", False)])
def test_offset_of_nan_permits_any_gradient(tmp_path: Path, offset: str, any_result: bool) -> None:
    region = REGION.replace("[.inf]", "[1]")
    desc = region.replace("InputPixelOffset: 0", f"InputPixelOffset: {offset}")
    case = single(tmp_path, "ROI_ALIGN_GRAD", desc)
    for gradients in ([0, 5, 1], [np.nan, 1e30, -np.inf]):
        assert accepts(case, "OutputGradientTensor", gradients) is any_result, gradients


GREATEST = """InputTensor: {Sizes: [1, 1, 4, 1], DataType: FLOAT32, values: [VALUES, 0]},
  InputGradientTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]},
  ROITensor: {Sizes: [1, 4], DataType: FLOAT32, values: [0, 0, 0, 3]},
  BatchIndicesTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputGradientTensor: {Sizes: [1, 1, 4, 1], DataType: FLOAT32},
  OutputROIGradientTensor: {Sizes: [1, 4], DataType: FLOAT32},
  ReductionFunction: MAX, InterpolationMode: NEAREST_NEIGHBOR, SpatialScaleX: 1, SpatialScaleY: 1,
  InputPixelOffset: 0, OutputPixelOffset: OFFSET, MinimumSamplesPerOutput: 3,
  MaximumSamplesPerOutput: 3, AlignRegionsToCorners: false"""


def gradients_may_be(tmp_path: Path, values: str, offset: str, gradients: list[float]) -> bool:
    """Return whether these gradients are right; rows are sampled at 0, 1 and 2, less `offset`."""
    desc = GREATEST.replace("VALUES", values).replace("OFFSET", offset)
    case = single(tmp_path, "ROI_ALIGN_GRAD", desc)
    return accepts(case, "OutputGradientTensor", gradients)


def test_gradient_may_go_to_either_possible_maximum(tmp_path: Path) -> None:
    """Samples at 0.5, 1.5 and 2.5 may read the elements 1, 2 and 3, or 0, 1 and 2."""
    assert gradients_may_be(tmp_path, "9, 5, 7", "-0.5", [0, 0, 3, 0])
    assert gradients_may_be(tmp_path, "9, 5, 7", "-0.5", [3, 0, 0, 0])
    assert not gradients_may_be(tmp_path, "9, 5, 7", "-0.5", [0, 0, 0, 3])
    assert gradients_may_be(tmp_path, "9, 5, 7", "0", [3, 0, 0, 0])
    assert not gradients_may_be(tmp_path, "9, 5, 7", "0", [0, 0, 3, 0])


def test_products_of_both_signs_that_overflow_may_be_nan(tmp_path: Path) -> None:
    """1e21 * 1e20 and -2e21 * 1e20 overflow."""
    desc = """
      InputTensor: {Sizes: [1, 2, 2, 1], DataType: FLOAT32, values: [0, 1.0e+21, 0, -2.0e+21]},
      InputGradientTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [1.0e+20, 1.0e+20]},
      ROITensor: {Sizes: [1, 4], DataType: FLOAT32, values: [0, 0, 0, 1]},
      BatchIndicesTensor: {Sizes: [1], DataType: UINT32, values: [0]},
      OutputROIGradientTensor: {Sizes: [1, 4], DataType: FLOAT32},
      ReductionFunction: AVERAGE, InterpolationMode: LINEAR, SpatialScaleX: 1, SpatialScaleY: 1,
      InputPixelOffset: 0, OutputPixelOffset: -0.5, MinimumSamplesPerOutput: 1,
      MaximumSamplesPerOutput: 1, AlignRegionsToCorners: false"""
    case = single(tmp_path, "ROI_ALIGN_GRAD", desc)
    for of_y in (-np.inf, np.nan):
        assert accepts(case, "OutputROIGradientTensor", [0, of_y, 0, 0]), of_y
    smaller = desc.replace("e+20", "e+10")
    case = single(tmp_path, "ROI_ALIGN_GRAD", smaller)
    assert not accepts(case, "OutputROIGradientTensor", [0, np.nan, 0, 0])


@pytest.mark.parametrize(("begin", "any_result"), [("3.4028235e+38", True), ("2", False)])
def test_begin_that_cancels_with_the_extent_permits_any_gradient(
    tmp_path: Path, begin: str, any_result: bool
) -> None:
    """The sample lies at `begin - 1 - begin`, where all DirectML releases give the region 2."""
    desc = f"""
      InputTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [0, 1]}},
      InputGradientTensor: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [1]}},
      ROITensor: {{Sizes: [1, 4], DataType: FLOAT32, values: [{begin}, 0, 0, 1]}},
      BatchIndicesTensor: {{Sizes: [1], DataType: UINT32, values: [0]}},
      OutputGradientTensor: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32}},
      OutputROIGradientTensor: {{Sizes: [1, 4], DataType: FLOAT32}},
      ReductionFunction: AVERAGE, InterpolationMode: NEAREST_NEIGHBOR, SpatialScaleX: 1,
      SpatialScaleY: 1, InputPixelOffset: 1, OutputPixelOffset: -1, MinimumSamplesPerOutput: 1,
      MaximumSamplesPerOutput: 1, AlignRegionsToCorners: false"""
    case = single(tmp_path, "ROI_ALIGN_GRAD", desc)
    assert accepts(case, "OutputROIGradientTensor", [2, 0, 0, 0]) is any_result
    assert accepts(case, "OutputGradientTensor", [1, 0]) is any_result


@pytest.mark.parametrize(("extent", "passed_over"), [(2.0**27, True), (2.0**20, False)])
def test_sample_whose_number_is_lost_in_float32_may_be_passed_over(
    tmp_path: Path, extent: float, passed_over: bool
) -> None:
    """The second of 16 samples lies at 2.8; DirectML leaves out the 0.2 of it beyond 2^27."""
    gradients = [0, 1] + 14 * [0]
    desc = f"""
      InputGradientTensor: {{Sizes: [1, 1, 1, 16], DataType: FLOAT32, values: {gradients}}},
      ROITensor: {{Sizes: [1, 4], DataType: FLOAT32, values: [3.3, 0, {3.3 + extent}, 0]}},
      BatchIndicesTensor: {{Sizes: [1], DataType: UINT32, values: [0]}},
      OutputGradientTensor: {{Sizes: [1, 1, 1, 6], DataType: FLOAT32}},
      ReductionFunction: AVERAGE, InterpolationMode: LINEAR, SpatialScaleX: 1,
      SpatialScaleY: 1, InputPixelOffset: 0.5, OutputPixelOffset: 1, MinimumSamplesPerOutput: 1,
      MaximumSamplesPerOutput: 1, AlignRegionsToCorners: false"""
    case = single(tmp_path, "ROI_ALIGN_GRAD", desc)
    assert accepts(case, "OutputGradientTensor", [0, 0, 0.2, 0.8, 0, 0])
    assert accepts(case, "OutputGradientTensor", [0, 0, 0, 0.8, 0, 0]) is passed_over
