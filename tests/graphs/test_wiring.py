"""`graph_problems` names the rules of wiring and the constraints of nodes that a graph breaks.

The tested code is in `dmlconf/graphs/wiring.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import Graph, InputEdge, IntermediateEdge, Node, OutputEdge
from dmlconf.graphs.wiring import WIRING_RULES, graph_problems
from dmlconf.tensors.datatypes import DataType
from tests.graphs.suites import TWO_NODES, graph_case

ROW = TensorDesc(DataType.FLOAT32, (1, 1, 1, 3))


@pytest.fixture
def valid(tmp_path: Path) -> Graph:
    return graph_case(tmp_path, TWO_NODES).graph


def rules(graph: Graph) -> list[str]:
    return [problem.rule for problem in graph_problems(graph)]


def with_input(graph: Graph, node: str, tensor: str, desc: TensorDesc) -> Graph:
    """Return the graph with another desc of the tensor that a node reads."""
    nodes = tuple(
        replace(each, desc={**each.desc, tensor: desc})
        if isinstance(each, Node) and each.name == node
        else each
        for each in graph.nodes
    )
    return replace(graph, nodes=nodes)


def test_valid_graph_has_no_problems(valid: Graph) -> None:
    assert rules(valid) == []


def test_edge_whose_end_does_not_exist_is_found(valid: Graph) -> None:
    for edges in (
        {"input_edges": (*valid.input_edges, InputEdge("nothing", "relu", "InputTensor"))},
        {"output_edges": (OutputEdge("nothing", "OutputTensor", "y"),)},
        {"output_edges": (*valid.output_edges, OutputEdge("relu", "OutputTensor", "z"))},
    ):
        assert "edge-ends-exist" in rules(replace(valid, **edges))
    link = IntermediateEdge("double", "OutputTensor", "relu", "OtherTensor")
    [problem] = graph_problems(replace(valid, intermediate_edges=(*valid.intermediate_edges, link)))
    assert problem.message == "the node relu has no input OtherTensor"


def test_input_without_or_with_two_sources_is_found(
    valid: Graph,
) -> None:
    assert rules(replace(valid, input_edges=valid.input_edges[:1])) == ["required-input"]
    twice = (*valid.input_edges, InputEdge("x", "relu", "InputTensor"))
    assert "single-source" in rules(replace(valid, input_edges=twice))


def test_cycle_is_found(valid: Graph) -> None:
    link = IntermediateEdge("relu", "OutputTensor", "double", "BTensor")
    edges = tuple(edge for edge in valid.input_edges if edge.tensor != "BTensor")
    cycle = replace(valid, input_edges=edges, intermediate_edges=(*valid.intermediate_edges, link))
    assert rules(cycle) == ["acyclic"]


def test_node_that_feeds_nothing_is_found(valid: Graph) -> None:
    idle = Node("idle", "ACTIVATION_RELU", {"InputTensor": ROW, "OutputTensor": ROW})
    edges = (*valid.input_edges, InputEdge("x", "idle", "InputTensor"))
    graph = replace(valid, nodes=(*valid.nodes, idle), input_edges=edges)
    assert rules(graph) == ["node-feeds-something"]


def test_ends_of_an_edge_need_equal_bytes_and_types(valid: Graph) -> None:
    other_sizes = with_input(valid, "relu", "InputTensor", replace(ROW, Sizes=(1, 1, 1, 5)))
    assert "edge-size" in rules(other_sizes)
    other_type = with_input(valid, "relu", "InputTensor", replace(ROW, DataType=DataType.INT32))
    assert "edge-data-type" in rules(other_type)
    seen_twice = replace(ROW, Sizes=(1, 1, 2, 3), Strides=(3, 3, 0, 1))
    assert "edge-size" not in rules(with_input(valid, "relu", "InputTensor", seen_twice))


def test_owned_tensor_must_be_owned_by_all_consumers(valid: Graph) -> None:
    owned = replace(ROW, Flags=("OWNED_BY_DML",))
    assert rules(with_input(valid, "relu", "InputTensor", owned)) == ["owned-by-graph-input"]
    [problem] = graph_problems(with_input(valid, "double", "ATensor", owned))
    assert problem.rule == "owned-by-all-consumers"
    assert problem.message == "x is OWNED_BY_DML elsewhere, but not in BTensor of double"
    both = with_input(with_input(valid, "double", "ATensor", owned), "double", "BTensor", owned)
    assert rules(both) == []


def test_graph_needs_outputs_with_one_source_each(valid: Graph) -> None:
    assert "edge-ends-exist" in rules(replace(valid, output_edges=()))
    twice = (*valid.output_edges, OutputEdge("double", "OutputTensor", "y"))
    assert rules(replace(valid, output_edges=twice)) == ["single-output-source"]
    none = replace(valid, outputs={}, output_edges=())
    assert "graph-has-output" in rules(none)


def test_tensor_with_too_few_strides_is_found(
    valid: Graph,
) -> None:
    wrong = with_input(
        valid, "relu", "InputTensor", replace(ROW, Sizes=(1, 1, 2, 3), Strides=(3, 1))
    )
    assert "strides-per-dimension" in rules(wrong)
    assert "edge-size" not in rules(wrong)


@pytest.mark.parametrize(
    "tensor",
    [
        TensorDesc(DataType.FLOAT32, (1, 1, 1, 0)),
        TensorDesc(DataType.FLOAT32, (1, 1, 1, 3), (3, 1)),
    ],
)
def test_constant_with_wrong_sizes_or_strides_is_found(tmp_path: Path, tensor: TensorDesc) -> None:
    text = TWO_NODES.replace(
        "nodes:",
        "constants: {two: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [2, 2, 2]}}\nnodes:",
    ).replace("BTensor: x", "BTensor: two")
    graph = graph_case(tmp_path, text).graph
    assert rules(graph) == []
    [constant] = graph.constants
    changed = replace(constant, tensor=tensor)
    nodes = tuple(changed if node is constant else node for node in graph.nodes)
    assert "constant-size" in rules(replace(graph, nodes=nodes))


def test_constraint_that_a_node_breaks_is_named(valid: Graph) -> None:
    wrong = with_input(valid, "relu", "InputTensor", replace(ROW, Sizes=(1, 1, 3, 1)))
    assert rules(wrong) == ["same-sizes"]
    assert "same-sizes" not in WIRING_RULES
