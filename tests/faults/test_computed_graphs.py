"""The wrong values that a known fault gives to a node are carried to the outputs of its graph.

The waived outputs were measured on DirectML 1.15.4.

The tested code is in `dmlconf/faults/prediction.py`, `dmlconf/faults/signed_low_words.py`,
`dmlconf/faults/normalization.py`, `dmlconf/excuses/known_faults.py` and
`schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import outputs_of, status_and_fault
from tests.graphs.suites import graph_case

LOW_WORDS = "int64-low-words-compared-as-signed"


LOW_WORDS_GRAPH = """
inputs:
  a: {Sizes: [1, 1, 1, 3], DataType: INT64, values: [2147483648, 5, 4294967295]}
  b: {Sizes: [1, 1, 1, 3], DataType: INT64, values: [7, 2147483649, 1]}
nodes:
  first: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: a, OutputTensor: {}}}
  least:
    operator: ELEMENT_WISE_MIN
    desc: {ATensor: first, BTensor: b, OutputTensor: {}}
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: least, BTensor: b, OutputTensor: {}}}
outputs: {y: sum}
"""


def test_fault_of_a_node_is_carried_through_the_graph(tmp_path: Path) -> None:
    case = graph_case(tmp_path, LOW_WORDS_GRAPH)
    # The minimum of a and b by low words as signed numbers, plus b.
    wrong = [2147483648 + 7, 2147483649 * 2, 4294967295 + 1]
    assert status_and_fault(case, outputs_of(case, {"y": wrong}), "1.15.4") == (
        Status.WAIVED,
        LOW_WORDS,
    )
    wrong[1] += 1
    assert status_and_fault(case, outputs_of(case, {"y": wrong}), "1.15.4") == (Status.FAILED, "")
    right = [7 + 7, 5 + 2147483649, 1 + 1]
    assert status_and_fault(case, outputs_of(case, {"y": right}), "1.15.4") == (Status.PASSED, "")


SINGLE_ELEMENTS = """
inputs:
  x: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [-3, -0.5, -0.25, 3]}
  b: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [5, 6, 7, 8]}
nodes:
  norm:
    operator: MEAN_VARIANCE_NORMALIZATION1
    desc:
      InputTensor: x
      ScaleTensor: b
      BiasTensor: b
      OutputTensor: {}
      Axes: [1]
      NormalizeVariance: true
      Epsilon: 0.5
  y: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: norm, OutputTensor: {}}}
outputs: {y: y}
"""


def test_element_used_as_its_variance_is_waived(tmp_path: Path) -> None:
    """0 / sqrt(x + 0.5) is NaN for the elements -3 and -0.5, and 0 for -0.25 and 3."""
    case = graph_case(tmp_path, SINGLE_ELEMENTS)
    nan = float("nan")
    for values, expected in (
        ([nan, nan, -7, -8], (Status.WAIVED, "element-in-place-of-its-variance")),
        ([nan, -6, -7, -8], (Status.FAILED, "")),
        ([nan, nan, -7, nan], (Status.FAILED, "")),
        ([-5, -6, -7, -8], (Status.PASSED, "")),
    ):
        assert status_and_fault(case, outputs_of(case, {"y": values}), "1.15.4") == expected


TWO_FAULTS = """
inputs:
  a: {Sizes: [1, 1, 2, 2], DataType: INT64, values: [2147483648, 5, 4294967295, 1]}
nodes:
  cut:
    operator: SLICE1
    desc:
      InputTensor: a
      OutputTensor: {Sizes: [1, 1, 2, 1]}
      InputWindowOffsets: [0, 0, 0, 0]
      InputWindowSizes: [1, 1, 2, 2]
      InputWindowStrides: [1, 1, 1, 1]
  greatest:
    operator: REDUCE
    desc:
      Function: MAX
      InputTensor: cut
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: INT64}
      Axes: [2]
outputs: {y: greatest}
"""


def test_two_faults_in_one_graph_are_both_named(tmp_path: Path) -> None:
    case = graph_case(tmp_path, TWO_FAULTS)
    status, name = status_and_fault(case, outputs_of(case, {"y": [5]}), "1.15.4")
    assert status is Status.WAIVED
    assert set(name.split(" and ")) == {LOW_WORDS, "slice-of-a-window-that-is-the-whole-input"}
    assert status_and_fault(case, outputs_of(case, {"y": [1]}), "1.15.4") == (Status.FAILED, "")
