"""A graph: nodes, and the edges that join their tensors, as in `DML_GRAPH_DESC`.

Both ends of an edge see the same buffer, each by its own desc. In a valid graph, the two descs may
differ in Sizes and Strides, but have the same number of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.tensors.datatypes import Array

__all__ = [
    "CONSTANT_TENSOR",
    "Constant",
    "CycleError",
    "Graph",
    "GraphNode",
    "InputEdge",
    "IntermediateEdge",
    "Node",
    "OutputEdge",
    "Slot",
    "graph_of",
]

CONSTANT_TENSOR: Final = "OutputTensor"
"""The name by which edges refer to the only tensor of a constant."""

Slot = tuple[str, str]
"""A tensor of a node: the node's name and the tensor's, such as `InputTensors[0]`."""


@dataclass(frozen=True)
class Node:
    """An operator as a node, with a name unique in its graph: `DML_OPERATOR_GRAPH_NODE_DESC`."""

    name: str
    operator_name: str
    desc: Desc

    @property
    def operator(self) -> Operator:
        """The operator, from the catalogue."""
        return catalogue.operator(self.operator_name)

    def tensors(self, kind: FieldKind) -> Mapping[str, TensorDesc]:
        """Return the inputs or outputs that the desc has, by name, in struct order."""
        return {name: tensor for name, _, tensor in tensors_of(self.operator, self.desc, kind)}

    @cached_property
    def inputs(self) -> Mapping[str, TensorDesc]:
        """The input tensors that the desc has, by name."""
        return self.tensors(FieldKind.INPUT)

    @cached_property
    def outputs(self) -> Mapping[str, TensorDesc]:
        """The output tensors that the desc has, by name."""
        return self.tensors(FieldKind.OUTPUT)


@dataclass(frozen=True, slots=True)
class Constant:
    """Data that the graph holds itself: `DML_CONSTANT_DATA_GRAPH_NODE_DESC`, feature level 6_2.

    Attributes:
        tensor: the layout of the data.
        data: the elements, shaped like the tensor's Sizes, with its data type's dtype.
    """

    name: str
    tensor: TensorDesc
    data: Array = field(compare=False)

    @property
    def inputs(self) -> Mapping[str, TensorDesc]:
        """Empty: nothing feeds a constant."""
        return {}

    @property
    def outputs(self) -> Mapping[str, TensorDesc]:
        """The tensor, under the name `CONSTANT_TENSOR`."""
        return {CONSTANT_TENSOR: self.tensor}


GraphNode = Node | Constant


@dataclass(frozen=True, slots=True)
class InputEdge:
    """An edge from an input of the graph to an input tensor of a node."""

    graph_input: str
    node: str
    tensor: str


@dataclass(frozen=True, slots=True)
class IntermediateEdge:
    """An edge from an output tensor of a node, or a constant, to an input tensor of a node."""

    from_node: str
    from_tensor: str
    to_node: str
    to_tensor: str


@dataclass(frozen=True, slots=True)
class OutputEdge:
    """An edge from an output tensor of a node to an output of the graph."""

    node: str
    tensor: str
    graph_output: str


@dataclass(frozen=True)
class Graph:
    """A graph, perhaps one that DirectML must refuse.

    Attributes:
        inputs, outputs: the layout of each graph input and output, by name, in the order of their
            indices.
        nodes: the nodes, in the order of their indices.
    """

    inputs: Mapping[str, TensorDesc]
    outputs: Mapping[str, TensorDesc]
    nodes: tuple[GraphNode, ...]
    input_edges: tuple[InputEdge, ...] = ()
    intermediate_edges: tuple[IntermediateEdge, ...] = ()
    output_edges: tuple[OutputEdge, ...] = ()

    @property
    def by_name(self) -> dict[str, GraphNode]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    @property
    def operator_nodes(self) -> tuple[Node, ...]:
        """The nodes that are operators, in order."""
        return tuple(node for node in self.nodes if isinstance(node, Node))

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The nodes that are constants, in order."""
        return tuple(node for node in self.nodes if isinstance(node, Constant))

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of the nodes' operators, each once, in the order of the nodes."""
        return tuple(dict.fromkeys(node.operator_name for node in self.operator_nodes))

    def sources(self) -> Mapping[Slot, str | Slot]:
        """Return the sources of the input tensors that edges feed.

        A source is the name of a graph input, or an output tensor of a node. If several edges feed
        a tensor, the first counts; edges from graph inputs come before others.
        """
        return self._sources

    @cached_property
    def _sources(self) -> Mapping[Slot, str | Slot]:
        sources: dict[Slot, str | Slot] = {}
        for edge in self.input_edges:
            sources.setdefault((edge.node, edge.tensor), edge.graph_input)
        for link in self.intermediate_edges:
            slot = link.to_node, link.to_tensor
            sources.setdefault(slot, (link.from_node, link.from_tensor))
        return sources

    @cached_property
    def reads(self) -> Mapping[str, Sequence[tuple[str, str | Slot]]]:
        """For each node, by name: its input tensors that edges feed, and their sources."""
        reads: dict[str, list[tuple[str, str | Slot]]] = {node.name: [] for node in self.nodes}
        for (name, tensor), source in self.sources().items():
            if name in reads:
                reads[name].append((tensor, source))
        return reads

    @cached_property
    def producers(self) -> Mapping[str | Slot, TensorDesc]:
        """The desc of whatever can feed a node: graph inputs by name, node outputs by slot."""
        producers: dict[str | Slot, TensorDesc] = {}
        producers.update(self.inputs)
        for node in self.nodes:
            for name, tensor in node.outputs.items():
                producers[node.name, name] = tensor
        return producers

    def output_sources(self) -> dict[str, Slot]:
        """Return, by the name of each graph output, the output tensor of a node that feeds it.

        If several edges lead to an output, the first counts. An output without an edge is left out.
        """
        sources: dict[str, Slot] = {}
        for edge in self.output_edges:
            sources.setdefault(edge.graph_output, (edge.node, edge.tensor))
        return sources

    def nodes_behind(self, name: str) -> frozenset[str]:
        """Return the names of the nodes that read a node's outputs, directly or through others."""
        behind: set[str] = set()
        ends = [name]
        while ends:
            end = ends.pop()
            readers = {edge.to_node for edge in self.intermediate_edges if edge.from_node == end}
            ends += readers - behind
            behind |= readers
        return frozenset(behind)

    def neighbours(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of operators whose nodes an edge joins, the feeding one first.

        Each pair occurs once; edges from constants do not count.
        """
        names = {node.name: node.operator_name for node in self.operator_nodes}
        edges = ((edge.from_node, edge.to_node) for edge in self.intermediate_edges)
        pairs = ((names[a], names[b]) for a, b in edges if a in names and b in names)
        return tuple(dict.fromkeys(pairs))

    def in_order(self) -> tuple[GraphNode, ...]:
        """Return the nodes, each after those that feed it; a cycle raises `CycleError`."""
        return self._in_order

    @cached_property
    def _in_order(self) -> tuple[GraphNode, ...]:
        by_name = self.by_name
        indices = {name: index for index, name in enumerate(by_name)}
        feeders: dict[str, set[str]] = {name: set() for name in by_name}
        for edge in self.intermediate_edges:
            if edge.from_node in by_name and edge.to_node in by_name:
                feeders[edge.to_node].add(edge.from_node)
        fed: dict[str, list[str]] = {name: [] for name in by_name}
        for name, before in feeders.items():
            for feeder in before:
                fed[feeder].append(name)
        missing = {name: len(before) for name, before in feeders.items()}
        order: list[GraphNode] = []
        ready = [name for name, count in missing.items() if not count]
        while ready:
            order += [by_name[name] for name in ready]
            for name in ready:
                for consumer in fed[name]:
                    missing[consumer] -= 1
            consumers = {consumer for name in ready for consumer in fed[name]}
            ready = sorted(
                (name for name in consumers if not missing[name]), key=indices.__getitem__
            )
        if len(order) < len(by_name):
            raise CycleError(tuple(name for name, count in missing.items() if count))
        return tuple(order)

    def content(self) -> Mapping[str, Any]:
        """Return the graph as lists, mappings and descs; constants' data is in hexadecimal."""
        return {
            "inputs": dict(self.inputs),
            "outputs": dict(self.outputs),
            "nodes": [
                {"name": node.name, "operator": node.operator_name, "desc": node.desc}
                if isinstance(node, Node)
                else {"name": node.name, "tensor": node.tensor, "data": node.data.tobytes().hex()}
                for node in self.nodes
            ],
            "edges": [
                *((edge.graph_input, edge.node, edge.tensor) for edge in self.input_edges),
                *(
                    (edge.from_node, edge.from_tensor, edge.to_node, edge.to_tensor)
                    for edge in self.intermediate_edges
                ),
                *((edge.node, edge.tensor, edge.graph_output) for edge in self.output_edges),
            ],
        }


class CycleError(ValueError):
    """Nodes feed each other in a cycle; `nodes` also has the nodes that need their outputs."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        self.nodes = nodes
        super().__init__(f"the nodes {', '.join(nodes)} wait for each other")


def graph_of(node: Node) -> Graph:
    """Return the graph of one node; its inputs and outputs have the names of the node's tensors."""
    return Graph(
        inputs=node.inputs,
        outputs=node.outputs,
        nodes=(node,),
        input_edges=tuple(InputEdge(name, node.name, name) for name in node.inputs),
        output_edges=tuple(OutputEdge(node.name, name, name) for name in node.outputs),
    )
