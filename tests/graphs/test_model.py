"""A graph orders its nodes or names a cycle of them, and knows its sources and its constants.

The tested code is in `dmlconf/graphs/model.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import CycleError, Graph, IntermediateEdge, Node
from dmlconf.tensors.datatypes import DataType
from tests.graphs.suites import TWO_NODES, graph_case

ROW = TensorDesc(DataType.FLOAT32, (1, 1, 1, 3))


def relu(name: str) -> Node:
    return Node(name, "ACTIVATION_RELU", {"InputTensor": ROW, "OutputTensor": ROW})


def link(first: str, second: str) -> IntermediateEdge:
    return IntermediateEdge(first, "OutputTensor", second, "InputTensor")


def test_nodes_are_ordered_after_the_nodes_that_feed_them() -> None:
    nodes = relu("c"), relu("b"), relu("a")
    graph = Graph({}, {}, nodes, intermediate_edges=(link("a", "b"), link("b", "c")))
    assert [node.name for node in graph.in_order()] == ["a", "b", "c"]


def test_edge_of_a_missing_node_keeps_the_order() -> None:
    links = link("b", "a"), link("nothing", "b"), link("a", "nothing")
    graph = Graph({}, {}, (relu("a"), relu("b")), intermediate_edges=links)
    assert [node.name for node in graph.in_order()] == ["b", "a"]


def test_nodes_of_a_cycle_are_named() -> None:
    edges = link("a", "b"), link("b", "c"), link("c", "b")
    graph = Graph({}, {}, (relu("a"), relu("b"), relu("c")), intermediate_edges=edges)
    with pytest.raises(CycleError) as error:
        graph.in_order()
    assert set(error.value.nodes) == {"b", "c"}


def test_graph_knows_sources_outputs_and_neighbours(tmp_path: Path) -> None:
    graph = graph_case(tmp_path, TWO_NODES).graph
    assert graph.sources() == {
        ("double", "ATensor"): "x",
        ("double", "BTensor"): "x",
        ("relu", "InputTensor"): ("double", "OutputTensor"),
    }
    assert graph.output_sources() == {"y": ("relu", "OutputTensor")}
    assert graph.neighbours() == (("ELEMENT_WISE_ADD", "ACTIVATION_RELU"),)


def test_equal_pairs_of_neighbours_are_named_once() -> None:
    nodes = relu("a"), relu("b"), relu("c")
    graph = Graph({}, {}, nodes, intermediate_edges=(link("a", "b"), link("b", "c")))
    assert graph.neighbours() == (("ACTIVATION_RELU", "ACTIVATION_RELU"),)


def test_constants_are_nodes_without_inputs(tmp_path: Path) -> None:
    text = TWO_NODES.replace(
        "nodes:",
        "constants: {two: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [2, 2, 2]}}\nnodes:",
    ).replace("BTensor: x", "BTensor: two")
    graph = graph_case(tmp_path, text).graph
    [constant] = graph.constants
    assert (constant.name, constant.inputs) == ("two", {})
    assert graph.sources()["double", "BTensor"] == ("two", "OutputTensor")
    assert graph.neighbours() == (("ELEMENT_WISE_ADD", "ACTIVATION_RELU"),)
