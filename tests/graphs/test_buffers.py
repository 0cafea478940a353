"""Nodes decide which inputs of a graph DirectML may own, and which outputs may be in place.

An output is in place if it is written to the buffer of an input.

The tested code is in `dmlconf/graphs/buffers.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.buffers import (
    flagged,
    in_place_pairs,
    may_share_buffers,
    ownable_inputs,
    with_owned_inputs,
)
from dmlconf.graphs.wiring import graph_problems
from dmlconf.tensors.datatypes import DataType
from tests.graphs.suites import graph_case

TENSOR = "{Sizes: [1, 1, 2, 3], DataType: FLOAT32, values: [1, 2, 3, 4, 5, 6]}"

TWO_READERS = f"""
inputs:
  x: {TENSOR}
  scale: {TENSOR}
  unused: {TENSOR}
  sequence: {{Sizes: [1, 1, 1, 1], DataType: UINT32, values: [1]}}
nodes:
  product:
    operator: ELEMENT_WISE_MULTIPLY
    desc: {{ATensor: x, BTensor: scale, OutputTensor: {{}}}}
  sum:
    operator: ELEMENT_WISE_ADD
    desc: {{ATensor: product, BTensor: scale, OutputTensor: {{}}}}
  tiled:
    operator: TILE
    desc: {{InputTensor: sequence, OutputTensor: {{Sizes: [1, 1, 1, 2]}}, Repeats: [1, 1, 1, 2]}}
outputs: {{y: sum, z: tiled}}
"""
"""A graph of which two nodes read `scale`, and none reads `unused`."""

RECURRENT = """
inputs:
  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}
  weights: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 2, 3, 4]}
  recurrence: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 2, 3, 4]}
nodes:
  layer:
    operator: RNN
    desc:
      InputTensor: x
      WeightTensor: weights
      RecurrenceTensor: recurrence
      OutputSequenceTensor: {Sizes: [1, 1, 1, 2]}
      ActivationDescs: [{operator: ACTIVATION_TANH}]
      Direction: FORWARD
outputs: {y: layer.OutputSequenceTensor}
"""


def test_inputs_after_the_first_can_be_owned(
    tmp_path: Path,
) -> None:
    graph = graph_case(tmp_path, TWO_READERS).graph
    assert ownable_inputs(graph) == ("scale", "sequence")


def test_owned_input_is_owned_wherever_it_is_read(tmp_path: Path) -> None:
    owned = with_owned_inputs(graph_case(tmp_path, TWO_READERS).graph, {"scale"})
    assert graph_problems(owned) == ()
    assert {name: tensor.Flags for name, tensor in owned.inputs.items() if tensor.Flags} == {
        "scale": ("OWNED_BY_DML",)
    }
    product, total, _ = owned.operator_nodes
    assert product.desc["ATensor"].Flags == ()
    assert product.desc["BTensor"].Flags == total.desc["BTensor"].Flags == ("OWNED_BY_DML",)


def test_owned_input_is_not_ownable(tmp_path: Path) -> None:
    owned = with_owned_inputs(graph_case(tmp_path, TWO_READERS).graph, {"scale"})
    assert ownable_inputs(owned) == ("sequence",)


def test_flag_of_ownership_is_set_once_or_cleared() -> None:
    tensor = TensorDesc(DataType.FLOAT32, (2,))
    owned = flagged(tensor, owned=True)
    assert owned.Flags == flagged(owned, owned=True).Flags == ("OWNED_BY_DML",)
    assert flagged(owned, owned=False) == flagged(tensor, owned=False) == tensor


def test_input_is_not_ownable_if_its_operator_forbids_that(tmp_path: Path) -> None:
    assert ownable_inputs(graph_case(tmp_path, RECURRENT).graph) == ()


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [("x", "scale", {("y", "x"), ("y", "scale")}), ("x", "x", set())],
    ids=["an-operator", "an-input-read-twice"],
)
def test_one_operator_may_write_in_place(
    tmp_path: Path, a: str, b: str, pairs: set[tuple[str, str]]
) -> None:
    graph = f"""
inputs:
  x: {TENSOR}
  scale: {TENSOR}
nodes:
  sum: {{operator: ELEMENT_WISE_ADD, desc: {{ATensor: {a}, BTensor: {b}, OutputTensor: {{}}}}}}
outputs: {{y: sum}}
"""
    assert set(in_place_pairs(graph_case(tmp_path, graph).graph)) == pairs


def test_constant_as_an_output_is_not_in_place(tmp_path: Path) -> None:
    graph = f"""
inputs: {{x: {TENSOR}}}
constants: {{k: {TENSOR}}}
nodes:
  relu: {{operator: ACTIVATION_RELU, desc: {{InputTensor: x, OutputTensor: {{}}}}}}
outputs: {{y: relu, z: k}}
"""
    assert in_place_pairs(graph_case(tmp_path, graph).graph) == (("y", "x"),)


def test_input_read_with_other_sizes_is_not_in_place(tmp_path: Path) -> None:
    graph = f"""
inputs: {{x: {TENSOR}, w: {TENSOR}}}
nodes:
  sum: {{operator: ELEMENT_WISE_ADD, desc: {{ATensor: x, BTensor: w, OutputTensor: {{}}}}}}
outputs: {{y: sum}}
"""
    same = graph_case(tmp_path, graph).graph
    turned = replace(same.inputs["x"], Sizes=(1, 1, 3, 2))
    assert in_place_pairs(same) == (("y", "x"), ("y", "w"))
    assert in_place_pairs(replace(same, inputs={**same.inputs, "x": turned})) == (("y", "w"),)


def test_several_operators_may_not_write_in_place(tmp_path: Path) -> None:
    graph = f"""
inputs:
  x: {TENSOR}
  w: {TENSOR}
nodes:
  relu: {{operator: ACTIVATION_RELU, desc: {{InputTensor: x, OutputTensor: {{}}}}}}
  sum: {{operator: ELEMENT_WISE_ADD, desc: {{ATensor: relu, BTensor: w, OutputTensor: {{}}}}}}
outputs: {{y: sum}}
"""
    assert not may_share_buffers(graph_case(tmp_path, graph).graph)


@pytest.mark.parametrize(
    ("of_input", "of_output", "may"),
    [("[2, 1]", "[2, 1]", True), ("[1, 2]", "[2, 1]", False), ("[2, 1]", "[1, 2]", False)],
)
def test_only_packed_tensors_may_share_buffers(
    tmp_path: Path, of_input: str, of_output: str, may: bool
) -> None:
    """CompileGraph may copy a transposed tensor to the output's memory."""
    tensor = "Sizes: [2, 2], DataType: FLOAT32"
    graph = f"""
inputs:
  x: {{{tensor}, values: [1, 2, 3, 4]}}
  w: {{{tensor}, Strides: {of_input}, values: [1, 2, 3, 4]}}
nodes:
  sum:
    operator: ELEMENT_WISE_ADD
    desc: {{ATensor: x, BTensor: w, OutputTensor: {{{tensor}, Strides: {of_output}}}}}
outputs: {{y: sum}}
"""
    assert may_share_buffers(graph_case(tmp_path, graph).graph) is may
