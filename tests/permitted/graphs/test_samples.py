"""A graph permits outputs of kernels that choose the same candidate for all elements.

The tested code is in `dmlconf/permitted/graphs/samples.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.permitted.graphs.accepted import accepts, graph

INPUTS = """
  x: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, 0.5, 0.25]}
  w: {Sizes: [1, 1, 3, 1], DataType: FLOAT32, values: [1, -2, 0]}"""

WEIGHTED = """
  rows:
    operator: RESAMPLE2
    desc:
      InputTensor: x
      OutputTensor: {Sizes: [1, 1, 3, 256], DataType: FLOAT32}
      InterpolationMode: LINEAR
      RoundingDirection: INCREASING
      Scales: [1, 1, 1, 1]
      InputPixelOffsets: [0, 0, -1, 0]
      OutputPixelOffsets: [0, 0, 0.5, 0]
  weighted:
    operator: ELEMENT_WISE_MULTIPLY
    desc:
      ATensor: rows
      BTensor: {from: w, Sizes: [1, 1, 3, 256], Strides: [0, 0, 1, 0]}
      OutputTensor: {}
  node:
    operator: REDUCE
    desc: {InputTensor: weighted, Axes: [2, 3], Function: SUM,
           OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}}"""


def test_sum_is_right_if_all_elements_take_the_same_candidate(tmp_path: Path) -> None:
    """The first two rows may be filled with (0.75, 0.375), (1, 0.25) or (1, 0.75).

    DirectML 1.13.1 gives 128.
    """
    case = graph(tmp_path, INPUTS, WEIGHTED)
    for total in (0, 128, -128):
        assert accepts(case, "y", [total]), total
    for total in (200, -250):
        assert not accepts(case, "y", [total]), total


HALVED = """
  rows:
    operator: RESAMPLE2
    desc:
      InputTensor: x
      OutputTensor: {Sizes: [1, 1, 3, 1], DataType: FLOAT16}
      InterpolationMode: LINEAR
      RoundingDirection: INCREASING
      Scales: [1, 1, 1, 1]
      InputPixelOffsets: [0, 0, -2, 0]
      OutputPixelOffsets: [0, 0, 0.5, 0]
  node: {operator: ELEMENT_WISE_IDENTITY,
         desc: {InputTensor: rows, OutputTensor: {}, ScaleBias: {Scale: 0.5, Bias: 0}}}"""


def test_candidate_beyond_float16_is_stored_as_infinity_or_65504(tmp_path: Path) -> None:
    """The rows may be 2e4, 1e5 and -1e5, of which two exceed FLOAT16."""
    inputs = "\n  x: {Sizes: [1, 1, 3, 1], DataType: FLOAT16, values: [2.0e+4, 6.0e+4, 0]}"
    case = graph(tmp_path, inputs, HALVED)
    for halves in ([1e4, 32752, -32752], [1e4, np.inf, -np.inf]):
        assert accepts(case, "y", halves), halves
    for halves in ([3e4, 32752, -32752], [1e4, np.nan, -32752], [1e4, 32752, 32752]):
        assert not accepts(case, "y", halves), halves
