"""What follows from near values: which comes first, which are zero, and which overflow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.permitted.graphs.accepted import accepts, graph

NONZERO = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: NONZERO_COORDINATES,
         desc: {InputTensor: cosine, OutputCountTensor: {Sizes: [1], DataType: UINT32},
                OutputCoordinatesTensor: {Sizes: [4, 1], DataType: UINT32}}}"""

NEAR_ZERO = "\n  x: {Sizes: [4], DataType: FLOAT32, values: [1.5707964, 1, 1.5707964, 0]}"
"""The cosines of the first and the third may be zero."""


def test_any_number_of_elements_that_may_be_zero_is_counted(tmp_path: Path) -> None:
    case = graph(tmp_path, NEAR_ZERO, NONZERO)
    for count in (2, 3, 4):
        assert accepts(case, "y", [count]), count
    for count in (1, 5):
        assert not accepts(case, "y", [count]), count


def test_a_coordinate_is_that_of_any_element_that_may_be_counted_there(tmp_path: Path) -> None:
    case = graph(tmp_path, NEAR_ZERO, NONZERO, "node.OutputCoordinatesTensor")
    for rows in ([0, 1, 2, 3], [0, 1, 3, 9], [1, 2, 3, 9], [1, 3, 9, 9]):
        assert accepts(case, "y", rows), rows
    for rows in ([2, 3, 9, 9], [3, 3, 9, 9], [0, 0, 2, 3]):
        assert not accepts(case, "y", rows), rows


FIRST = """
  cosine: {operator: ELEMENT_WISE_COS, desc: {InputTensor: x, OutputTensor: {}}}
  first: {operator: ARGMAX,
          desc: {InputTensor: cosine, OutputTensor: {Sizes: [8, 1], DataType: UINT32}, Axes: [1],
                 AxisDirection: INCREASING}}
  node: {operator: ELEMENT_WISE_DIFFERENCE_SQUARE,
         desc: {ATensor: first, BTensor: i, OutputTensor: {}}}"""


def test_each_index_that_is_right_leads_to_a_result_that_is(tmp_path: Path) -> None:
    """The cosines of 1.5707964 are 0 with an error of 0.0008, so each of 12 may be the greatest."""
    inputs = f"""
  x: {{Sizes: [8, 12], DataType: FLOAT32, values: {[1.5707964] * 96}}}
  i: {{Sizes: [8, 1], DataType: UINT32, values: [0, 0, 0, 0, 0, 0, 0, 0]}}"""
    case = graph(tmp_path, inputs, FIRST)
    for index in range(12):
        assert accepts(case, "y", [index**2] * 8), index
    assert not accepts(case, "y", [144] * 8)
    assert not accepts(case, "y", [2] * 8)


LARGE = """
  large: {operator: ACTIVATION_LINEAR, desc: {InputTensor: x, OutputTensor: {}, Alpha: 3, Beta: 1}}
  sine: {operator: ELEMENT_WISE_SIN, desc: {InputTensor: large, OutputTensor: {}}}
  scaled: {operator: ACTIVATION_LINEAR,
           desc: {InputTensor: sine, OutputTensor: {}, Alpha: 3000, Beta: 0}}
  node: {operator: ELEMENT_WISE_SINH, desc: {InputTensor: scaled, OutputTensor: {}}}"""


def test_finite_numbers_lead_to_every_number_up_to_the_infinity_of_their_ends(
    tmp_path: Path,
) -> None:
    """Sines of 9e20 may be anything from -1 to 1, and 3,000 times that overflows in SINH."""
    case = graph(tmp_path, "\n  x: {Sizes: [1], DataType: FLOAT32, values: [3.0e+20]}", LARGE)
    for value in (-np.inf, -1e30, -27.3, 0.5, 1e30, np.inf):
        assert accepts(case, "y", [value]), value
    assert not accepts(case, "y", [np.nan])
