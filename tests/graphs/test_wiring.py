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
def right(tmp_path: Path) -> Graph:
    return graph_case(tmp_path, TWO_NODES).graph


def rules(graph: Graph) -> list[str]:
    """Return the rules and constraints that a graph breaks."""
    return [fault.rule for fault in graph_problems(graph)]


def with_input(graph: Graph, node: str, tensor: str, desc: TensorDesc) -> Graph:
    """Return the graph with another desc of the tensor that a node reads."""
    nodes = tuple(
        replace(each, desc={**each.desc, tensor: desc})
        if isinstance(each, Node) and each.name == node
        else each
        for each in graph.nodes
    )
    return replace(graph, nodes=nodes)


def test_a_right_graph_has_no_problems(right: Graph) -> None:
    assert rules(right) == []


def test_an_edge_whose_end_does_not_exist_is_found(right: Graph) -> None:
    for edges in (
        {"input_edges": (*right.input_edges, InputEdge("nothing", "relu", "InputTensor"))},
        {"output_edges": (OutputEdge("nothing", "OutputTensor", "y"),)},
        {"output_edges": (*right.output_edges, OutputEdge("relu", "OutputTensor", "z"))},
    ):
        assert "edge-ends-exist" in rules(replace(right, **edges))
    link = IntermediateEdge("double", "OutputTensor", "relu", "OtherTensor")
    [fault] = graph_problems(replace(right, intermediate_edges=(*right.intermediate_edges, link)))
    assert fault.message == "the node relu has no input OtherTensor"


def test_an_input_that_nothing_feeds_and_an_input_that_two_edges_feed_are_found(
    right: Graph,
) -> None:
    assert rules(replace(right, input_edges=right.input_edges[:1])) == ["required-input"]
    twice = (*right.input_edges, InputEdge("x", "relu", "InputTensor"))
    assert "single-source" in rules(replace(right, input_edges=twice))


def test_a_cycle_is_found(right: Graph) -> None:
    link = IntermediateEdge("relu", "OutputTensor", "double", "BTensor")
    edges = tuple(edge for edge in right.input_edges if edge.tensor != "BTensor")
    cycle = replace(right, input_edges=edges, intermediate_edges=(*right.intermediate_edges, link))
    assert rules(cycle) == ["acyclic"]


def test_a_node_that_feeds_nothing_is_found(right: Graph) -> None:
    idle = Node("idle", "ACTIVATION_RELU", {"InputTensor": ROW, "OutputTensor": ROW})
    edges = (*right.input_edges, InputEdge("x", "idle", "InputTensor"))
    graph = replace(right, nodes=(*right.nodes, idle), input_edges=edges)
    assert rules(graph) == ["node-feeds-something"]


def test_both_ends_of_an_edge_need_equal_bytes_and_one_data_type(right: Graph) -> None:
    other_sizes = with_input(right, "relu", "InputTensor", replace(ROW, Sizes=(1, 1, 1, 5)))
    assert "edge-size" in rules(other_sizes)
    other_type = with_input(right, "relu", "InputTensor", replace(ROW, DataType=DataType.INT32))
    assert "edge-data-type" in rules(other_type)
    seen_twice = replace(ROW, Sizes=(1, 1, 2, 3), Strides=(3, 3, 0, 1))
    assert "edge-size" not in rules(with_input(right, "relu", "InputTensor", seen_twice))


def test_owned_tensors_need_graph_inputs_that_all_consumers_own(right: Graph) -> None:
    owned = replace(ROW, Flags=("OWNED_BY_DML",))
    assert rules(with_input(right, "relu", "InputTensor", owned)) == ["owned-by-graph-input"]
    [fault] = graph_problems(with_input(right, "double", "ATensor", owned))
    assert fault.rule == "owned-by-all-consumers"
    assert fault.message == "x is OWNED_BY_DML elsewhere, but not in BTensor of double"
    both = with_input(with_input(right, "double", "ATensor", owned), "double", "BTensor", owned)
    assert rules(both) == []


def test_an_output_needs_one_source_and_a_graph_needs_an_output(right: Graph) -> None:
    twice = (*right.output_edges, OutputEdge("double", "OutputTensor", "y"))
    assert rules(replace(right, output_edges=twice)) == ["single-output-source"]
    none = replace(right, outputs={}, output_edges=())
    assert "graph-has-output" in rules(none)


def test_strides_of_another_number_than_the_sizes_are_reported_without_a_number_of_bytes(
    right: Graph,
) -> None:
    wrong = with_input(right, "relu", "InputTensor", replace(ROW, Strides=(3, 1)))
    assert "strides-per-dimension" in rules(wrong)
    assert "edge-size" not in rules(wrong)


@pytest.mark.parametrize(
    "tensor",
    [
        TensorDesc(DataType.FLOAT32, (1, 1, 1, 0)),
        TensorDesc(DataType.FLOAT32, (1, 1, 1, 3), (3, 1)),
    ],
)
def test_a_constant_of_which_no_bytes_are_known_is_found(
    tmp_path: Path, tensor: TensorDesc
) -> None:
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


def test_the_constraint_that_a_node_breaks_is_named(right: Graph) -> None:
    wrong = with_input(right, "relu", "InputTensor", replace(ROW, Sizes=(1, 1, 3, 1)))
    assert rules(wrong) == ["same-sizes"]
    assert "same-sizes" not in WIRING_RULES
