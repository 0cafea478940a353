"""The operator or graph that is compiled for a case, with its bound inputs and outputs."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind
from dmlconf.graphs.buffers import may_share_buffers
from dmlconf.graphs.model import CONSTANT_TENSOR, Constant, Graph, GraphNode, Node

__all__ = [
    "Binding",
    "Bindings",
    "GraphPlan",
    "OperatorPlan",
    "Plan",
    "plan",
]


@dataclass(frozen=True, slots=True)
class Binding:
    """A bound tensor.

    Attributes:
        name: the name of an operator's tensor, such as `InputTensors[0]`, or of a graph's input or
            output.
    """

    name: str
    desc: TensorDesc


Bindings = tuple[Binding | None, ...]
"""Tensors in the order of their bindings; None if a tensor is absent."""


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """An operator for CompileOperator.

    Attributes:
        node: the operator with its desc; the node has no name.
        in_place: as `Case.in_place`.
    """

    node: Node
    inputs: Bindings
    outputs: Bindings
    in_place: Mapping[str, str]

    input_edges: ClassVar[tuple[tuple[int, int, int], ...]] = ()
    output_edges: ClassVar[tuple[tuple[int, int, int], ...]] = ()
    intermediate_edges: ClassVar[tuple[tuple[int, int, int, int], ...]] = ()

    def key(self) -> Hashable:
        """Return a key that differs between plans that are compiled differently."""
        return _node_key(self.node)


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A graph for CompileGraph; edges are tuples of indices.

    Attributes:
        inputs: the bound inputs; None for an input without edges.
        in_place: as `Case.in_place`.
        input_edges: (input of the graph, node, input of the node).
        output_edges: (node, output of the node, output of the graph).
        intermediate_edges: (node, output of the node, next node, input of the next node).
    """

    nodes: tuple[GraphNode, ...]
    inputs: Bindings
    outputs: Bindings
    in_place: Mapping[str, str]
    input_edges: tuple[tuple[int, int, int], ...]
    output_edges: tuple[tuple[int, int, int], ...]
    intermediate_edges: tuple[tuple[int, int, int, int], ...] = ()

    def key(self) -> Hashable:
        """Return a key that differs between plans that are compiled differently."""
        edges = self.input_edges, self.output_edges, self.intermediate_edges
        return tuple(map(_node_key, self.nodes)), *edges, len(self.inputs), len(self.outputs)


Plan = OperatorPlan | GraphPlan


def plan(case: Case, *, as_graph: bool = False) -> Plan:
    """Return the plan of a case.

    A graph writes its outputs in place only if `may_share_buffers` permits it.

    Args:
        as_graph: whether an operator is compiled as a graph of one node.
    """
    if as_graph or case.is_compiled_as_graph:
        in_place = case.in_place if may_share_buffers(case.graph) else {}
        return _graph_plan(case.graph, in_place)
    [node] = case.graph.operator_nodes
    inputs, outputs = (_bindings(node, kind) for kind in (FieldKind.INPUT, FieldKind.OUTPUT))
    return OperatorPlan(node, inputs, outputs, case.in_place)


def _graph_plan(graph: Graph, in_place: Mapping[str, str]) -> GraphPlan:
    """Return the plan of a graph; for an unknown name, an edge has an index out of range."""
    by_name = graph.by_name
    nodes = tuple(by_name)
    inputs, outputs = tuple(graph.inputs), tuple(graph.outputs)

    def end(name: str, tensor: str, kind: FieldKind) -> tuple[int, int]:
        node = by_name.get(name)
        return _number(nodes, name), _number(_tensor_names(node, kind), tensor)

    used = {edge.graph_input for edge in graph.input_edges}
    return GraphPlan(
        graph.nodes,
        tuple(Binding(name, desc) if name in used else None for name, desc in graph.inputs.items()),
        tuple(Binding(name, desc) for name, desc in graph.outputs.items()),
        in_place,
        tuple(
            (_number(inputs, edge.graph_input), *end(edge.node, edge.tensor, FieldKind.INPUT))
            for edge in graph.input_edges
        ),
        tuple(
            (*end(edge.node, edge.tensor, FieldKind.OUTPUT), _number(outputs, edge.graph_output))
            for edge in graph.output_edges
        ),
        tuple(
            (
                *end(edge.from_node, edge.from_tensor, FieldKind.OUTPUT),
                *end(edge.to_node, edge.to_tensor, FieldKind.INPUT),
            )
            for edge in graph.intermediate_edges
        ),
    )


def _number(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _tensor_names(node: GraphNode | None, kind: FieldKind) -> tuple[str, ...]:
    if node is None:
        return ()
    if isinstance(node, Constant):
        return (CONSTANT_TENSOR,) if kind is FieldKind.OUTPUT else ()
    return tuple(name for name, _ in _tensors(node, kind))


def _bindings(node: Node, kind: FieldKind) -> Bindings:
    return tuple(Binding(name, desc) if desc else None for name, desc in _tensors(node, kind))


def _tensors(node: Node, kind: FieldKind) -> list[tuple[str, TensorDesc | None]]:
    by_field: dict[str, list[tuple[str, TensorDesc | None]]] = {}
    for name, field, desc in tensors_of(node.operator, node.desc, kind):
        by_field.setdefault(field.name, []).append((name, desc))
    return [
        each
        for field in node.operator.of_kind(kind)
        for each in by_field.get(field.name, [] if field.is_array else [(field.name, None)])
    ]


def _node_key(node: GraphNode) -> Hashable:
    if isinstance(node, Constant):
        return node.name, node.tensor, hashlib.sha256(node.data.tobytes()).digest()
    return node.name, node.operator_name, _key(node.desc)


def _key(value: Any) -> Hashable:
    if isinstance(value, float):
        # Compared as numbers, -0 would equal 0, and NaN would not equal itself.
        return struct.pack("<d", value)
    if isinstance(value, Mapping):
        return tuple((name, _key(item)) for name, item in sorted(value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_key, value))
    hashable: Hashable = value
    return hashable
