"""Read an application's `DML_GRAPH_DESC` as a `Graph`, and name its nodes, inputs and outputs."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dmlconf.backends.directml.api.decoding import UnknownDescError
from dmlconf.backends.directml.dispatch.graph import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_GRAPH_EDGE_DESC,
    DML_GRAPH_EDGE_TYPE,
    DML_GRAPH_NODE_DESC,
    DML_GRAPH_NODE_TYPE,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
)
from dmlconf.backends.directml.dispatch.placement import decode
from dmlconf.cases.identifiers import unique_name
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.graphs.model import (
    CONSTANT_TENSOR,
    Constant,
    Graph,
    GraphNode,
    InputEdge,
    IntermediateEdge,
    Node,
    OutputEdge,
)
from dmlconf.limits import MOST_NODES

__all__ = ["DecodedGraph", "Lookup", "Names", "decoded_graph", "slot_names"]

Lookup = Callable[[int], tuple[Operator, Desc] | None]
"""Returns the operator and desc of the IDMLOperator at an address; None if they are not known."""

_LONGEST_NAME: Final = 80
"""An application's name is cut to this many characters; a prefix or a number may be added."""

_MOST_EDGES: Final = 1 << 20
"""A graph with more edges of one kind is refused: its count may be damaged."""

_LARGEST_CONSTANT: Final = 1 << 24
"""The most bytes of a constant: as many as a line of the journal may have."""


@dataclass(frozen=True, slots=True)
class DecodedGraph:
    """A graph as an application described it.

    Attributes:
        graph: the graph, with names that a case file may use.
        names: from a part's name in `graph` to the application's own name, if these differ.
        inputs: for each of the graph's inputs, in order, its index in the application's desc.
        unused: how many more inputs the desc has, which nothing reads.
    """

    graph: Graph
    names: Mapping[str, str]
    inputs: tuple[int, ...]
    unused: int


def decoded_graph(address: int, lookup: Lookup) -> DecodedGraph:
    """Return the graph at the address of a `DML_GRAPH_DESC`.

    Raises:
        UnknownDescError: a node or an edge has a wrong type, an edge names a missing node or
            tensor, no node reads a constant, `lookup` does not know an operator, or the graph is
            larger than dmlconf reads.
    """
    native = DML_GRAPH_DESC.from_address(address)
    if native.NodeCount > MOST_NODES:
        raise UnknownDescError(f"a graph of {native.NodeCount:,} nodes; at most {MOST_NODES:,}")
    reader = _Reader(native, lookup)
    return reader.read()


@dataclass(slots=True)
class _Raw:
    """A node, with the names of its tensors, None for absent ones.

    A constant has no operator, and its bytes as `content`.
    """

    name: str
    operator: Operator | None = None
    desc: Desc = field(default_factory=dict)
    inputs: tuple[str | None, ...] = ()
    outputs: tuple[str | None, ...] = ()
    content: bytes = b""


class Names:
    """Names of a graph's parts that a case file may use.

    Attributes:
        own: the application's own names that `unique` changed, by the new name.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self.own: dict[str, str] = {}

    def unique(self, own: str, kind: str) -> str:
        """Return a name that was not returned before.

        Args:
            own: the application's name; empty for none.
            kind: how the name begins if `own` cannot begin it: with `gemm`, an empty name becomes
                `gemm`, and `7` becomes `gemm-7`.
        """
        kind = kind.replace("_", "-")
        text = re.sub(r"[^A-Za-z0-9_]+", "-", own or kind).strip("-")[:_LONGEST_NAME].strip("-")
        if not re.match("[A-Za-z_]", text):
            text = f"{kind}-{text}".strip("-")
        name = unique_name(text, self._used)
        if own and own != name:
            self.own[name] = own
        return name


class _Reader:
    def __init__(self, native: Any, lookup: Lookup) -> None:
        self._native = native
        self._lookup = lookup
        self._names = Names()

    def read(self) -> DecodedGraph:
        native = self._native
        nodes = [self._node(each) for each in _items(native.Nodes, native.NodeCount, _NODE)]
        inputs = _edges(native.InputEdges, native.InputEdgeCount, *_INPUT)
        links = _edges(native.IntermediateEdges, native.IntermediateEdgeCount, *_INTERMEDIATE)
        outputs = _edges(native.OutputEdges, native.OutputEdgeCount, *_OUTPUT)
        tensors: dict[tuple[str, str], TensorDesc] = {}
        for raw in nodes:
            if raw.operator is not None:
                for name, _, tensor in tensors_of(raw.operator, raw.desc):
                    tensors[raw.name, name] = tensor
        constants = {raw.name for raw in nodes if raw.operator is None}
        numbers = sorted({edge[0] for edge in inputs})
        input_names = {number: self._names.unique("", f"input-{number}") for number in numbers}
        input_edges = tuple(
            InputEdge(input_names[number], *_end(nodes, to, FieldKind.INPUT, slot))
            for number, to, slot in inputs
        )
        intermediate = tuple(
            IntermediateEdge(
                *_end(nodes, start, FieldKind.OUTPUT, first),
                *_end(nodes, to, FieldKind.INPUT, slot),
            )
            for start, first, to, slot in links
        )
        for link in intermediate:  # A constant has no desc: that of its first reader counts.
            if link.from_node in constants:
                read = tensors[link.to_node, link.to_tensor]
                tensors.setdefault((link.from_node, link.from_tensor), read)
        output_names = {
            number: self._names.unique("", f"output-{number}")
            for number in sorted({edge[2] for edge in outputs})
        }
        output_edges = tuple(
            OutputEdge(*_end(nodes, start, FieldKind.OUTPUT, slot), output_names[number])
            for start, slot, number in sorted(outputs, key=lambda edge: edge[2])
        )
        finished = tuple(_finished(raw, tensors) for raw in nodes)
        graph = Graph(
            inputs={
                name: next(
                    tensors[edge.node, edge.tensor]
                    for edge in input_edges
                    if edge.graph_input == name
                )
                for name in input_names.values()
            },
            outputs={edge.graph_output: tensors[edge.node, edge.tensor] for edge in output_edges},
            nodes=finished,
            input_edges=input_edges,
            intermediate_edges=intermediate,
            output_edges=output_edges,
        )
        unused = int(native.InputCount) - len(numbers)
        return DecodedGraph(graph, self._names.own, tuple(numbers), unused)

    def _node(self, native: Any) -> _Raw:
        if native.Type == DML_GRAPH_NODE_TYPE.OPERATOR:
            desc = DML_OPERATOR_GRAPH_NODE_DESC.from_address(native.Desc)
            known = self._lookup(desc.Operator or 0)
            if known is None:
                reason = "a node's operator was created before capturing began, or is skipped"
                raise UnknownDescError(reason)
            operator, members = known
            inputs = tuple(slot_names(operator, members, FieldKind.INPUT))
            outputs = tuple(slot_names(operator, members, FieldKind.OUTPUT))
            name = self._names.unique(_text(desc.Name), operator.name.lower())
            return _Raw(name, operator, members, inputs, outputs)
        if native.Type == DML_GRAPH_NODE_TYPE.CONSTANT:
            constant = DML_CONSTANT_DATA_GRAPH_NODE_DESC.from_address(native.Desc)
            if constant.DataSize > _LARGEST_CONSTANT:
                raise UnknownDescError(f"a constant of {constant.DataSize:,} bytes")
            name = self._names.unique(_text(constant.Name), "constant")
            content = ctypes.string_at(constant.Data, constant.DataSize)
            return _Raw(name, outputs=(CONSTANT_TENSOR,), content=content)
        raise UnknownDescError(f"a node of DML_GRAPH_NODE_TYPE {native.Type}")


_NODE: Final = DML_GRAPH_NODE_DESC
_INPUT: Final = (DML_GRAPH_EDGE_TYPE.INPUT, DML_INPUT_GRAPH_EDGE_DESC)
_INTERMEDIATE: Final = (DML_GRAPH_EDGE_TYPE.INTERMEDIATE, DML_INTERMEDIATE_GRAPH_EDGE_DESC)
_OUTPUT: Final = (DML_GRAPH_EDGE_TYPE.OUTPUT, DML_OUTPUT_GRAPH_EDGE_DESC)


def _items(address: int | None, count: int, kind: Any) -> Iterator[Any]:
    if count > _MOST_EDGES:
        raise UnknownDescError(f"a list of {count:,} parts")
    for index in range(count if address else 0):
        yield kind.from_address((address or 0) + index * ctypes.sizeof(kind))


def _edges(address: int | None, count: int, expected: int, kind: Any) -> list[tuple[int, ...]]:
    edges = []
    for edge in _items(address, count, DML_GRAPH_EDGE_DESC):
        if edge.Type != expected:
            raise UnknownDescError(f"an edge of DML_GRAPH_EDGE_TYPE {edge.Type}")
        desc = kind.from_address(edge.Desc)
        edges.append(tuple(int(getattr(desc, name)) for name, _ in kind._fields_[:-1]))
    return edges


def _text(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace")


def slot_names(operator: Operator, desc: Desc, kind: FieldKind) -> Iterator[str | None]:
    """Yield the names of a node's inputs or outputs, by index; None for an absent tensor."""
    for entry in operator.of_kind(kind):
        value = desc.get(entry.name)
        if entry.is_array:
            yield from (str(TensorRef(entry.name, index)) for index in range(len(value or ())))
        else:
            yield None if value is None else entry.name


def _end(nodes: Sequence[_Raw], index: int, kind: FieldKind, slot: int) -> tuple[str, str]:
    """Return the names of the node and the tensor at an end of an edge."""
    if index >= len(nodes):
        raise UnknownDescError(f"an edge names node {index}, which the graph lacks")
    node = nodes[index]
    slots = node.inputs if kind is FieldKind.INPUT else node.outputs
    name = slots[slot] if slot < len(slots) else None
    if name is None:
        raise UnknownDescError(f"an edge names tensor {slot}, which its node lacks")
    return node.name, name


def _finished(raw: _Raw, tensors: Mapping[tuple[str, str], TensorDesc]) -> GraphNode:
    if raw.operator is not None:
        return Node(raw.name, raw.operator.name, raw.desc)
    tensor = tensors.get((raw.name, CONSTANT_TENSOR))
    if tensor is None:
        raise UnknownDescError(f"no node reads the constant {raw.name}")
    size = max(tensor.TotalTensorSizeInBytes, len(raw.content))
    content = np.frombuffer(raw.content.ljust(size, b"\0"), np.uint8)
    return Constant(raw.name, tensor, decode(tensor, content))
