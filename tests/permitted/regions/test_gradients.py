"""ROI_ALIGN_GRAD permits several results for infinite gradients and offsets that are NaN.

The tested code is in `dmlconf/permitted/regions/gradients.py`.
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
    """The sample is above the input; element 1 gets 0 * infinity: NaN or 0, as was measured."""
    case = single(tmp_path, "ROI_ALIGN_GRAD", REGION)
    for second in (np.nan, 0.0):
        assert accepts(case, "OutputGradientTensor", [np.inf, second, 0])
    assert not accepts(case, "OutputGradientTensor", [np.inf, 0, 1])


@pytest.mark.parametrize(("offset", "any_result"), [(".nan", True), ("0", False)])
def test_any_gradient_is_right_if_the_offset_of_a_region_is_nan(
    tmp_path: Path, offset: str, any_result: bool
) -> None:
    region = REGION.replace("[.inf]", "[1]")
    desc = region.replace("InputPixelOffset: 0", f"InputPixelOffset: {offset}")
    case = single(tmp_path, "ROI_ALIGN_GRAD", desc)
    for gradients in ([0, 5, 1], [np.nan, 1e30, -np.inf]):
        assert accepts(case, "OutputGradientTensor", gradients) is any_result, gradients
