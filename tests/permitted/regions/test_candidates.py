"""ROI_ALIGN1 may read a sample on either side of a boundary that its coordinate is close to.

The tested code is in `dmlconf/permitted/regions/candidates.py` and `unsure` of
`dmlconf/permitted/regions/sampling.py`.
"""

from __future__ import annotations

from pathlib import Path

from tests.permitted.graphs.accepted import accepts, single

ONE_ELEMENT = """InputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [5]},
  ROITensor: {Sizes: [1, 4], DataType: FLOAT32, values: [-5, ROW, -5, ROW]},
  BatchIndicesTensor: {Sizes: [1], DataType: UINT32, values: [0]},
  OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32},
  ReductionFunction: AVERAGE, InterpolationMode: LINEAR, SpatialScaleX: 0.1, SpatialScaleY: 0.1,
  InputPixelOffset: -0.5, OutputPixelOffset: 0, OutOfBoundsInputValue: -1,
  MinimumSamplesPerOutput: 1, MaximumSamplesPerOutput: 1, AlignRegionsToCorners: true"""


def test_sample_may_be_rounded_to_the_only_coordinate_inside(tmp_path: Path) -> None:
    """Only 0 is inside. -5 * float32(0.1) + 0.5 is -7e-9, or 0 with a rounded product."""
    near = single(tmp_path, "ROI_ALIGN1", ONE_ELEMENT.replace("ROW", "-5"))
    assert accepts(near, "OutputTensor", [5])
    assert accepts(near, "OutputTensor", [-1])
    assert not accepts(near, "OutputTensor", [2])
    outside = single(tmp_path, "ROI_ALIGN1", ONE_ELEMENT.replace("ROW", "-4"))
    assert accepts(outside, "OutputTensor", [-1])
    assert not accepts(outside, "OutputTensor", [5])


def test_offset_that_float32_loses_may_move_a_sample_inside(tmp_path: Path) -> None:
    """Only 0 is inside. DirectML 1.13.1 reads the middle sample there, and not at -1.2e-38."""
    desc = ONE_ELEMENT.replace("[-5, ROW, -5, ROW]", "[-7, -7, 7, 7]").replace(": 0.1", ": 1")
    desc = desc.replace("PerOutput: 1", "PerOutput: 3").replace("AVERAGE", "MAX")
    case = single(tmp_path, "ROI_ALIGN1", desc.replace("-0.5", "1.1754943508222875e-38"))
    assert accepts(case, "OutputTensor", [5])
    assert accepts(case, "OutputTensor", [-1])
    assert not accepts(case, "OutputTensor", [2])
    case = single(tmp_path, "ROI_ALIGN1", desc.replace("-0.5", "0.5"))
    assert not accepts(case, "OutputTensor", [5])


def test_a_sample_that_is_adrift_in_one_region_leaves_others_judged(tmp_path: Path) -> None:
    """The first region is FLOAT32 numbers of 5e7, whose samples are off by up to 100 columns."""
    desc = """InputTensor: {Sizes: [1, 1, 1, 5], DataType: FLOAT32, values: [3, 5, 9, -40, 33]},
      ROITensor: {Sizes: [1, 1, 2, 4], DataType: FLOAT32,
        values: [-16777215, 0, 16777218, 0, 0, 0, 1, 0]},
      BatchIndicesTensor: {Sizes: [1, 1, 1, 2], DataType: UINT32, values: [0, 0]},
      OutputTensor: {Sizes: [2, 1, 1, 5], DataType: FLOAT32}, ReductionFunction: AVERAGE,
      InterpolationMode: LINEAR, SpatialScaleX: 3, SpatialScaleY: 0, OutOfBoundsInputValue: 1,
      MinimumSamplesPerOutput: 1, MaximumSamplesPerOutput: 3"""
    case = single(tmp_path, "ROI_ALIGN", desc)
    outside, second = [1, 1, 12345, 1, 1], [3, 3.8, 5, 7.4, -0.8]
    assert accepts(case, "OutputTensor", outside + second)
    for wrong in (0, 3.81):
        assert not accepts(case, "OutputTensor", [*outside, 3, wrong, 5, 7.4, -0.8])
    assert not accepts(case, "OutputTensor", [1, 1.01, 12345, 1, 1, *second])
