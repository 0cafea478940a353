"""`decoded_graph` reads back a graph that an application gave to IDMLDevice1::CompileGraph.

The tested code is in `dmlconf/capture/graph_decoding.py` and
`dmlconf/backends/directml/api/decoding.py`.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import pytest

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.decoding import UnknownDescError, decoded_desc
from dmlconf.backends.directml.dispatch.graph import (
    DML_GRAPH_DESC,
    DML_GRAPH_NODE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    compile_graph,
)
from dmlconf.capture.graph_decoding import DecodedGraph, decoded_graph
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.plans import GraphPlan, plan
from dmlconf.fuzzing.graphs import graph_case
from dmlconf.graphs.model import Graph
from tests.backends.directml.com import FakeCom
from tests.bundled import bundled

OPERATORS = ("CONVOLUTION", "GEMM", "ELEMENT_WISE_ADD", "SPLIT", "JOIN", "ACTIVATION_RELU")


class TableWithoutOperators(dict[int, Any]):
    """A table that keeps no operator, as if all had been created before capturing began."""

    def __setitem__(self, key: int, value: Any) -> None:
        """Store nothing."""


class Device:
    """A device that keeps the descs of its operators as hooks do, and decodes compiled graphs.

    `known` has the desc of each operator by its address, and `graph` the last graph.
    """

    def __init__(self, rename: bytes | None = None) -> None:
        self.known: dict[int, Any] = {}
        self.graph: DecodedGraph | None = None
        self.error: UnknownDescError | None = None
        self._rename = rename
        self._addresses = count(1)
        self._operators: list[FakeCom] = []
        self._compiled = FakeCom(dml.IDML_COMPILED_OPERATOR)
        self._newer = FakeCom(dml.IDML_DEVICE1, CompileGraph=self._compile)
        self.com = FakeCom(dml.IDML_DEVICE, CreateOperator=self._create, QueryInterface=self._query)

    def _query(self, riid: Any, result: Any) -> int:
        result[0] = self._newer.address
        return 0

    def _create(self, desc: int, riid: Any, result: Any) -> int:
        self._operators.append(FakeCom(dml.IDML_OPERATOR))
        result[0] = self._operators[-1].address
        self.known[self._operators[-1].address] = decoded_desc(desc)
        return 0

    def _compile(self, desc: int, flags: int, riid: Any, result: Any) -> int:
        result[0] = self._compiled.address
        if self._rename is not None:
            graph = DML_GRAPH_DESC.from_address(desc)
            for index in range(graph.NodeCount):
                address = graph.Nodes + index * ctypes.sizeof(DML_GRAPH_NODE_DESC)
                node = DML_GRAPH_NODE_DESC.from_address(address)
                DML_OPERATOR_GRAPH_NODE_DESC.from_address(node.Desc).Name = self._rename
        try:
            self.graph = decoded_graph(desc, self.known.get)
        except UnknownDescError as error:
            self.error = error
        return 0


def device_after_compiling(case: GraphCase, rename: bytes | None = None) -> Device:
    """Return a device that has compiled a graph; `rename`, if given, is each node's name."""
    device = Device(rename)
    native = plan(case)
    assert isinstance(native, GraphPlan)
    with compile_graph(device.com, native, dml.DML_EXECUTION_FLAGS.NONE):
        return device


def content_by_number(graph: Graph) -> Any:
    """Return nodes, edges and constants; numbers replace the names of inputs and outputs."""
    used = {edge.graph_input for edge in graph.input_edges}
    names = (name for name in graph.inputs if name in used)
    inputs = {name: index for index, name in enumerate(names)}
    outputs = {name: index for index, name in enumerate(graph.outputs)}
    return (
        [(node.name, node.inputs, node.outputs) for node in graph.nodes],
        [(inputs[e.graph_input], e.node, e.tensor) for e in graph.input_edges],
        graph.intermediate_edges,
        sorted((outputs[e.graph_output], e.node, e.tensor) for e in graph.output_edges),
        [constant.data.tolist() for constant in graph.constants],
    )


def assert_operators_are_kept(device: Device) -> None:
    """Check that the nodes have the operators and descs that the device kept, in order."""
    assert device.graph is not None, device.error
    nodes = [(node.operator_name, node.desc) for node in device.graph.graph.operator_nodes]
    assert nodes == [(operator.name, desc) for operator, desc in device.known.values()]


@cache
def suite_graphs(file: str) -> tuple[GraphCase, ...]:
    planned = bundled(f"graphs/{file}").plan()
    valid = (p for p in planned if "rejected" not in p.template.data.get("expect", {}))
    cases = [valid_case(each) for each in valid]
    return tuple(case for case in cases if isinstance(case, GraphCase))


@pytest.mark.parametrize("number", range(8))
def test_random_graphs_of_2_to_8_nodes_are_read_back(number: int) -> None:
    case = valid_case(graph_case(OPERATORS, seed=37, number=number, nodes=8))
    assert isinstance(case, GraphCase)
    assert 2 <= len(case.graph.nodes) <= 8
    device = device_after_compiling(case)
    assert device.graph is not None, device.error
    graph = device.graph.graph
    assert content_by_number(graph) == content_by_number(case.graph)
    assert [*graph.inputs.values()] == [*case.graph.inputs.values()]
    assert [*graph.outputs.values()] == [*case.graph.outputs.values()]
    assert_operators_are_kept(device)


@pytest.mark.slow
def test_views_constants_and_unused_inputs_are_read_back() -> None:
    constants = suite_graphs("constants.yaml")
    assert any(case.graph.constants for case in constants)
    read_back = set()
    # All graphs with views would take long.
    for case in [*suite_graphs("views.yaml")[:10], *suite_graphs("wiring.yaml"), *constants]:
        device = device_after_compiling(case)
        assert device.graph is not None, device.error
        used = {edge.graph_input for edge in case.graph.input_edges}
        assert device.graph.unused == len(case.graph.inputs) - len(used)
        numbers = [index for index, name in enumerate(case.graph.inputs) if name in used]
        assert list(device.graph.inputs) == numbers
        assert content_by_number(device.graph.graph) == content_by_number(case.graph)
        assert_operators_are_kept(device)
        read_back.add(case.identifier)
    assert "graphs/wiring/unused-inputs-between-used-ones" in {
        n.partition("[")[0] for n in read_back
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("original", "first"),
    [
        (b"/encoder/layer.0/MatMul:0;x", "encoder-layer-0-MatMul-0-x"),
        (b"7", "element-wise-negate-7"),
        (b"_7", "_7"),
        (b"x" * 200, "x" * 80),
        (b"\xff\xfe", "element-wise-negate"),
        (b"", "element-wise-negate"),
    ],
)
def test_names_of_nodes_become_unique_and_valid_in_case_files(original: bytes, first: str) -> None:
    # The operator's name comes before an empty name, and before a digit.
    case = next(c for c in suite_graphs("chains.yaml") if len(c.graph.operator_nodes) == 2)
    graph = device_after_compiling(case, original).graph
    assert graph is not None
    nodes = [node.name for node in graph.graph.nodes]
    assert nodes == [first, f"{first}-2"]
    own = original.decode("utf-8", "replace")
    assert graph.names == ({node: own for node in nodes if node != own} if original else {})


@pytest.mark.slow
def test_operator_that_was_not_captured_is_reported() -> None:
    case = suite_graphs("chains.yaml")[0]
    device = Device()
    device.known = TableWithoutOperators()
    native = plan(case)
    assert isinstance(native, GraphPlan)
    with compile_graph(device.com, native, dml.DML_EXECUTION_FLAGS.NONE):
        assert "created before capturing began, or is skipped" in str(device.error)


@pytest.mark.slow
def test_edge_to_a_missing_node_is_reported() -> None:
    native = plan(suite_graphs("chains.yaml")[0])
    assert isinstance(native, GraphPlan)
    [(graph_input, _, tensor), *others] = native.input_edges
    wrong = replace(native, input_edges=((graph_input, 1000, tensor), *others))
    device = Device()
    with compile_graph(device.com, wrong, dml.DML_EXECUTION_FLAGS.NONE):
        assert str(device.error) == "an edge names node 1000, which the graph lacks"


def graph_plan_with_constant() -> tuple[GraphPlan, int]:
    """Return the plan of a graph with a constant, and the index of the constant's node."""
    case = next(each for each in suite_graphs("constants.yaml") if each.graph.constants)
    native = plan(case)
    assert isinstance(native, GraphPlan)
    name = case.graph.constants[0].name
    return native, [node.name for node in case.graph.nodes].index(name)


def test_constant_that_the_graph_returns_is_read_back() -> None:
    native, index = graph_plan_with_constant()
    last = (index, 0, len(native.output_edges))
    device = Device()
    edges = (*native.output_edges, last)
    with compile_graph(
        device.com, replace(native, output_edges=edges), dml.DML_EXECUTION_FLAGS.NONE
    ):
        assert device.graph is not None, device.error
    graph = device.graph.graph
    [constant] = [each for each in graph.constants if each.name == graph.nodes[index].name]
    assert [*graph.outputs.values()][-1] == constant.tensor


def test_a_constant_that_only_the_graph_returns_is_reported() -> None:
    native, index = graph_plan_with_constant()
    links = tuple(edge for edge in native.intermediate_edges if edge[0] != index)
    edges = (*native.output_edges, (index, 0, len(native.output_edges)))
    wrong = replace(native, intermediate_edges=links, output_edges=edges)
    device = Device()
    with compile_graph(device.com, wrong, dml.DML_EXECUTION_FLAGS.NONE):
        assert "no node reads the constant" in str(device.error)
