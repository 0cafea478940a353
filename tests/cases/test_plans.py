"""The plan of a case says what is compiled for it: an operator, or a graph with numbered edges.

The tested code is in `dmlconf/cases/plans.py` and, for graph inputs without an edge, in
`dmlconf/backends/directml/dispatch/placement.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dmlconf.backends.directml.dispatch.placement import placement_of
from dmlconf.cases.plans import GraphPlan, OperatorPlan, plan
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import (
    Constant,
    Graph,
    GraphNode,
    InputEdge,
    IntermediateEdge,
    Node,
    OutputEdge,
)
from dmlconf.tensors.datatypes import DataType
from tests.backends.directml.cases import case, gather, graph_case, tile

ROW = TensorDesc(DataType.FLOAT32, (3,))
ROWS = TensorDesc(DataType.FLOAT32, (2, 3))

SPLIT = Node("split", "SPLIT", {"InputTensor": ROWS, "OutputTensors": (ROW, ROW), "Axis": 0})
GEMM = Node(
    "gemm", "GEMM", {"ATensor": ROWS, "BTensor": ROWS, "CTensor": None, "OutputTensor": ROWS}
)
ADD = Node("add", "ELEMENT_WISE_ADD", {"ATensor": ROW, "BTensor": ROW, "OutputTensor": ROW})


def graph(*nodes: GraphNode, **parts: Any) -> Graph:
    return Graph({"x": ROWS, "y": ROWS}, {"z": ROW}, nodes, **parts)


def graph_plan(source: Graph) -> GraphPlan:
    """Return the plan of a graph.

    An input edge is (graph input, node, input of the node); an intermediate edge is
    (node, output, node, input); an output edge is (node, output, graph output).
    """
    result = plan(graph_case(source))
    assert isinstance(result, GraphPlan)
    return result


def test_an_operator_is_planned_alone_or_as_a_graph() -> None:
    assert isinstance(plan(tile()), OperatorPlan)
    actual = plan(gather(IndicesTensor=None), as_graph=True)
    assert isinstance(actual, GraphPlan)
    assert actual.input_edges == ((0, 0, 0),)
    assert actual.output_edges == ((0, 0, 0),)


def test_tensors_after_an_absent_tensor_keep_their_number() -> None:
    absent = case(
        "CONVOLUTION", InputTensor=ROW, FilterTensor=None, BiasTensor=ROW, OutputTensor=ROW
    )
    actual = plan(absent, as_graph=True)
    assert isinstance(actual, GraphPlan)
    assert actual.input_edges == ((0, 0, 0), (1, 0, 2))
    bound = [binding and binding.name for binding in actual.inputs]
    assert bound == ["InputTensor", "BiasTensor"]


def test_edges_number_nodes_and_their_tensors() -> None:
    actual = graph_plan(
        graph(
            ADD,
            SPLIT,
            input_edges=(InputEdge("y", "split", "InputTensor"),),
            intermediate_edges=(
                IntermediateEdge("split", "OutputTensors[1]", "add", "ATensor"),
                IntermediateEdge("split", "OutputTensors[0]", "add", "BTensor"),
            ),
            output_edges=(OutputEdge("add", "OutputTensor", "z"),),
        )
    )
    assert actual.input_edges == ((1, 1, 0),)
    assert actual.intermediate_edges == ((1, 1, 0, 0), (1, 0, 0, 1))
    assert actual.output_edges == ((0, 0, 0),)


def test_an_input_without_an_edge_is_bound_to_nothing() -> None:
    actual = graph_plan(graph(SPLIT, input_edges=(InputEdge("y", "split", "InputTensor"),)))
    assert [binding and binding.name for binding in actual.inputs] == [None, "y"]
    assert [each and each.name for each in placement_of(actual).inputs] == [None, "y"]


def test_unknown_names_get_the_number_after_the_last() -> None:
    actual = graph_plan(
        graph(
            GEMM,
            input_edges=(
                InputEdge("w", "gemm", "ATensor"),
                InputEdge("x", "gemm", "DTensor"),
                InputEdge("x", "gemm", "CTensor"),
            ),
            intermediate_edges=(IntermediateEdge("add", "OutputTensor", "gemm", "BTensor"),),
            output_edges=(OutputEdge("gemm", "OutputTensor", "v"),),
        )
    )
    # w comes after x and y, DTensor after three inputs, the node add after gemm, and v after z.
    assert actual.input_edges == ((2, 0, 0), (0, 0, 3), (0, 0, 2))
    assert actual.intermediate_edges == ((1, 0, 0, 1),)
    assert actual.output_edges == ((0, 0, 1),)


def test_the_output_of_a_constant_has_number_0() -> None:
    constant = Constant("two", ROW, np.full(3, 2, np.float32))
    edge = IntermediateEdge("two", "OutputTensor", "add", "BTensor")
    actual = graph_plan(graph(constant, ADD, intermediate_edges=(edge,)))
    assert actual.intermediate_edges == ((0, 0, 1, 1),)


def test_keys_differ_with_nodes_constants_and_edges() -> None:
    one = graph(Constant("c", ROW, np.ones(3, np.float32)), ADD)
    others = [
        graph(Constant("c", ROW, np.zeros(3, np.float32)), ADD),
        graph(Constant("c", ROW, np.ones(3, np.float32)), replace(ADD, name="sum")),
        graph(
            *one.nodes,
            intermediate_edges=(IntermediateEdge("c", "OutputTensor", "add", "ATensor"),),
        ),
        graph(
            *one.nodes,
            intermediate_edges=(IntermediateEdge("c", "OutputTensor", "add", "BTensor"),),
        ),
        graph(*reversed(one.nodes)),
    ]
    assert len({graph_plan(each).key() for each in (one, *others)}) == 1 + len(others)
    assert graph_plan(one).key() == graph_plan(graph(*one.nodes)).key()
