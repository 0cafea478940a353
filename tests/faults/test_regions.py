"""The known fault of ROI_POOLING is predicted: the bounds of parts overflow 32 bits.

The tested code is in `dmlconf/faults/regions.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.faults.regions import parts_beyond_32_bits_left_out
from tests.faults.user_cases import case_of


def test_region_from_the_least_int32_loses_its_parts(
    tmp_path: Path,
) -> None:
    desc = (
        "{InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, 2, 3, 4]}, "
        "ROITensor: {Sizes: [1, 1, 1, 5], DataType: FLOAT32, values: [0, CORNER, 0, 3, 0]}, "
        "OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, SpatialScale: 1, "
        "PooledSize: {Width: 2, Height: 1}}"
    )
    least = case_of(tmp_path, "ROI_POOLING", desc.replace("CORNER", str(-(2**31))))
    predicted = parts_beyond_32_bits_left_out(least)
    assert predicted is not None
    assert predicted.outputs["OutputTensor"].ravel().tolist() == [0, 0]
    below = str(-(2**31) - 2**8)  # The next FLOAT32.
    beyond = case_of(tmp_path, "ROI_POOLING", desc.replace("CORNER", below))
    assert parts_beyond_32_bits_left_out(beyond) is None


def test_part_of_a_region_may_wrap_around_to_elements(
    tmp_path: Path,
) -> None:
    """Part 4 begins at row 4 * 1073741825 // 5, whose product is 4 in 32 bits."""
    desc = """{InputTensor: {Sizes: [1, 1, 5, 1], DataType: FLOAT32, values: [9, 8, 1, 2, 3]},
      ROITensor: {Sizes: [1, 1, 1, 5], DataType: FLOAT32, values: [0, 0, 0, 0, 1073741824]},
      OutputTensor: {Sizes: [1, 1, 5, 1], DataType: FLOAT32}, SpatialScale: 1,
      PooledSize: {Width: 1, Height: 5}}"""
    case = case_of(tmp_path, "ROI_POOLING", desc)
    predicted = parts_beyond_32_bits_left_out(case)
    assert predicted is not None
    assert predicted.outputs["OutputTensor"].ravel().tolist() == [9, 0, 0, 0, 9]
