"""FLOAT16 sums and means of DirectML 1.8.0 to 1.9.1, whose first pass is truncated.

All outputs but those called wrong are what DirectML 1.8.0 and 1.9.1 gave.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.verdicts.verdict import Status
from tests.faults.test_computed_faults import case_of, outputs_of, status_and_fault
from tests.graphs.suites import graph_case

FAULT = "float16-mean-along-an-inner-axis"

SUM = (
    "{InputTensor: {Sizes: [4, 5], DataType: FLOAT16, values: [16384, 16384, 16384, 16384, 16384, "
    "-16384, -16384, -16384, -16384, -16384, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]}, "
    "OutputTensor: {Sizes: [1, 5], DataType: FLOAT16}, Axes: [0], Function: FUNCTION}"
)
"""Rows 0 and 2 are added first, where FLOAT16 loses the 1."""


@pytest.mark.parametrize(("function", "right"), [("SUM", 1), ("AVERAGE", 0.25)])
def test_rows_are_combined_in_two_passes(function: str, right: float, tmp_path: Path) -> None:
    case = case_of(tmp_path, "REDUCE", SUM.replace("FUNCTION", function))
    given = outputs_of(case, {"OutputTensor": [0] * 5})
    assert status_and_fault(case, given, "1.9.1") == (Status.WAIVED, FAULT)
    assert status_and_fault(case, given, "1.10.1") == (Status.FAILED, "")
    for wrong in (2 * right, -right):
        other = outputs_of(case, {"OutputTensor": [0, 0, 0, 0, wrong]})
        assert status_and_fault(case, other, "1.9.1") == (Status.FAILED, ""), wrong
    assert status_and_fault(case, outputs_of(case, {"OutputTensor": [right] * 5}), "1.9.1")[0] is (
        Status.PASSED
    )


NORMALIZED = (
    "{InputTensor: {Sizes: [4, 4], DataType: FLOAT16, values: [100.125, -3, 7.3, 1, "
    "-100.3125, 5, -2.7, 1, 0.7, -2.4, 0.1, 2, -0.4, 0.6, -4.6, 2]}, "
    "ScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [100]}, "
    "BiasTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.5]}, "
    "OutputTensor: {Sizes: [4, 4], DataType: FLOAT16}, Axes: [0], NormalizeVariance: true, "
    "Epsilon: 0.5}"
)

GIVEN = [
    *(141.75, -93.5, 159.5, -57.21875),
    *(-141.0, 153.0, -59.0, -57.21875),
    *(1.443359375, -75.0, 2.150390625, 58.21875),
    *(-0.10845947265625, 17.453125, -100.5625, 58.21875),
]


def test_mean_and_variance_are_averaged_so(tmp_path: Path) -> None:
    case = case_of(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", NORMALIZED)
    assert status_and_fault(case, outputs_of(case, {"OutputTensor": GIVEN}), "1.8.0") == (
        Status.WAIVED,
        FAULT,
    )
    for at, wrong in ((8, 1.47), (12, -0.13), (0, 142.5)):
        other = [*GIVEN]
        other[at] = wrong
        arrays = outputs_of(case, {"OutputTensor": other})
        assert status_and_fault(case, arrays, "1.8.0") == (Status.FAILED, ""), wrong


SIDE_BY_SIDE = """
inputs:
  x: {Sizes: [5, 4], Strides: [STRIDES], DataType: FLOAT16, values: [16384, -16384, 1, 0,
      16384, -16384, 1, 0, 16384, -16384, 1, 0, 16384, -16384, 1, 0, 16384, -16384, 1, 0]}
nodes:
  n: {operator: MEAN_VARIANCE_NORMALIZATION1,
      desc: {InputTensor: x, Axes: [1], NormalizeVariance: false, Epsilon: 0,
             OutputTensor: {Sizes: [5, 4], DataType: FLOAT16}}}
outputs: {y: n}
"""


@pytest.mark.parametrize(("strides", "status"), [("1, 5", Status.WAIVED), ("4, 1", Status.FAILED)])
def test_the_axes_are_those_in_memory_in_nodes_too(
    strides: str, status: Status, tmp_path: Path
) -> None:
    """Numbers that lie side by side are added at once: no 1 is lost, and the last is -0.25."""
    case = graph_case(tmp_path, SIDE_BY_SIDE.replace("STRIDES", strides))
    rows = np.tile(np.array([16384, -16384, 1, 0], np.float16), (5, 1))
    assert status_and_fault(case, {"y": rows}, "1.9.1")[0] is status
