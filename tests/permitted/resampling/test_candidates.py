"""RESAMPLE may read either of two nearest elements; UPSAMPLE_2D by 1 changes nothing.

The tested code is in `dmlconf/permitted/resampling/candidates.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlconf.permitted.allowance import CaseAllowances
from tests.permitted.graphs.accepted import accepts, graph, single

LINE = "Sizes: [10], DataType: FLOAT32, values: [1, 1, 1, 1, 7, .nan, 1, 1, 1, 1]"


def test_either_nearest_element_is_right_even_if_nan(tmp_path: Path) -> None:
    """The coordinate 0.5 / 0.1 - 0.5 is half-way between the elements 4 and 5."""
    nodes = """
  node: {operator: RESAMPLE, desc: {InputTensor: x, OutputTensor: {Sizes: [1]},
         InterpolationMode: NEAREST_NEIGHBOR, Scales: [0.1]}}"""
    case = graph(tmp_path, f"\n  x: {{{LINE}}}", nodes)
    assert accepts(case, "y", [np.nan])
    assert accepts(case, "y", [7])
    assert not accepts(case, "y", [1])


def test_upsampling_by_1_permits_only_the_input(tmp_path: Path) -> None:
    desc = """
  InputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT16, values: [0.2, -0.4, 3]},
  OutputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT16},
  ScaleSize: {Width: 1, Height: 1}, InterpolationMode: LINEAR"""
    case = single(tmp_path, "UPSAMPLE_2D", desc)
    (permitted,) = CaseAllowances(case).of("OutputTensor").candidates
    right = case.input("InputTensor")
    np.testing.assert_array_equal(permitted, (right, right))
