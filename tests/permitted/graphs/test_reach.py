"""Elements that follow from open or inexact elements of earlier nodes are right.

An element is called open if any value of it is right.

The tested code is in `dmlconf/permitted/graphs/`.
"""

from __future__ import annotations

from pathlib import Path

from tests.permitted.graphs.accepted import accepts, graph

ONE_HOT = """
  topk:
    operator: TOP_K
    desc: {InputTensor: x, OutputValueTensor: {Sizes: [1, 1], DataType: FLOAT32},
           OutputIndexTensor: {Sizes: [1, 1], DataType: UINT32}, Axis: 1, K: 1}
  node:
    operator: ONE_HOT
    desc: {IndicesTensor: topk.OutputIndexTensor, ValuesTensor: v,
           OutputTensor: {Sizes: [1, 3], DataType: FLOAT32}, Axis: 1}
"""

ATTENTION = """
  pool:
    operator: MAX_POOLING_GRAD
    desc: {InputTensor: x, InputGradientTensor: g,
           OutputGradientTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32},
           Strides: [1, 3], WindowSize: [2, 3], StartPadding: [1, 2], EndPadding: [1, 2],
           Dilations: [5, 1]}
  attention:
    operator: MULTIHEAD_ATTENTION
    desc: {QueryTensor: pool.OutputGradientTensor, KeyTensor: k, ValueTensor: v,
           OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32},
           Scale: 1, MaskFilterValue: 1, HeadCount: 1, MaskType: NONE}
  node:
    operator: ACTIVATION_RELU
    desc: {InputTensor: attention, OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}}
"""


def test_an_open_index_may_mark_any_element_of_one_hot(tmp_path: Path) -> None:
    """DirectML 1.15.4 gives the index 2 for the greatest of 0, NaN and 0."""
    inputs = """
  x: {Sizes: [1, 3], DataType: FLOAT32, values: [0, .nan, 0]}
  v: {Sizes: [1, 2], DataType: FLOAT32, values: [1, 0]}"""
    case = graph(tmp_path, inputs, ONE_HOT, "node")
    assert accepts(case, "y", [1, 1, 0])
    numbers = graph(tmp_path, inputs.replace(".nan", "3"), ONE_HOT, "node")
    assert accepts(numbers, "y", [1, 0, 1])
    assert not accepts(numbers, "y", [1, 1, 0])


def test_shares_of_an_open_logit_may_be_0_and_1(tmp_path: Path) -> None:
    """The gradient of a window with only padding may be in the first element (DirectML 1.15.4).

    Great logits of both signs choose the second value, infinite ones give NaN.
    """
    inputs = """
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}
  g: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [5, 6]}
  k: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [-5, 0, 3, 0]}
  v: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [0.25, -0.75, -0.625, 0.375]}"""
    case = graph(tmp_path, inputs, ATTENTION, "node")
    assert accepts(case, "y", [0, 0.375])


EQUALS = """
  tanh: {operator: ACTIVATION_TANH, desc: {InputTensor: x, OutputTensor: {}}}
  copy: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: SOURCE, OutputTensor: {}}}
  node:
    operator: ELEMENT_WISE_LOGICAL_EQUALS
    desc: {ATensor: copy, BTensor: tanh, OutputTensor: {Sizes: [2], DataType: UINT8}}
"""


def test_numbers_that_are_equal_within_their_errors_may_be_called_equal(tmp_path: Path) -> None:
    """DirectML 1.13.1 takes tanh(-0.00099486) for -0.00099486."""
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [-0.00099486, 0.5]}"
    case = graph(tmp_path, inputs, EQUALS.replace("SOURCE", "x"), "node")
    assert accepts(case, "y", [0, 0])
    assert accepts(case, "y", [1, 0])
    assert not accepts(case, "y", [2, 0])
    assert not accepts(case, "y", [0, 1])


def test_a_copy_of_a_number_with_an_error_equals_the_number(tmp_path: Path) -> None:
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [-0.00099486, 0.5]}"
    case = graph(tmp_path, inputs, EQUALS.replace("SOURCE", "tanh"), "node")
    assert accepts(case, "y", [1, 1])
    assert not accepts(case, "y", [1, 0])


def test_the_logarithm_of_an_open_share_may_be_any_number(tmp_path: Path) -> None:
    """DirectML 1.13.1 gives positive numbers for a line with NaN, which RELU keeps."""
    inputs = """
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}
  g: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [5, 6]}"""
    nodes = (
        ATTENTION[: ATTENTION.index("  attention:")]
        + """
  softmax:
    operator: ACTIVATION_LOG_SOFTMAX1
    desc: {InputTensor: pool.OutputGradientTensor, Axes: [AXIS],
           OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}}
  node:
    operator: ACTIVATION_RELU
    desc: {InputTensor: softmax, OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}}
"""
    )
    in_one_line = graph(tmp_path, inputs, nodes.replace("AXIS", "3"), "node")
    assert accepts(in_one_line, "y", [7, 0.25])
    apart = graph(tmp_path, inputs, nodes.replace("AXIS", "0"), "node")
    assert accepts(apart, "y", [0, 0])
    assert not accepts(apart, "y", [0, 0.25])
