"""Relations: other forms of a graph that must give the same outputs.

The outputs of two forms, such as the whole graph and a graph cut in two, are compared. No expected
values are needed. `judging.relations` runs and compares the forms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.buffers import flagged, node_flagged
from dmlconf.graphs.model import Constant, Graph, InputEdge, Node, OutputEdge, Slot

__all__ = [
    "Part",
    "Relation",
    "alike_descs",
    "exported",
    "halves",
    "lacking",
    "owned_otherwise",
    "part",
    "reversed_nodes",
    "swapped_inputs",
]


class Relation(StrEnum):
    """Which other form of a graph must give the same outputs."""

    EXPORTED = "exported"
    """Every intermediate is an output of the graph as well."""

    UNFUSED = "unfused"
    """Each node runs as a separate operator."""

    CUT = "cut"
    """The graph is cut into two graphs, which run one after the other."""

    OWNED = "owned"
    """Constants become inputs with the flag OWNED_BY_DML, and inputs with this flag lose it."""

    ORDER = "order"
    """The nodes and edges are listed in the opposite order."""


def alike_descs(one: TensorDesc, other: TensorDesc) -> bool:
    """Return whether two descs are equal, apart from Flags."""
    return replace(one, Flags=()) == replace(other, Flags=())


def swapped_inputs(graph: Graph) -> Iterator[tuple[Node, str, str, Graph]]:
    """Swap the sources of adjacent inputs of a node if they have `alike_descs`; yield each swap.

    Each item has the node, the names of the two inputs, and the graph with the swap. That graph is
    a mutant: it need not give the same outputs.
    """
    for node in graph.operator_nodes:
        for first, second in pairwise(node.inputs):
            if not alike_descs(node.inputs[first], node.inputs[second]):
                continue
            other = {(node.name, first): second, (node.name, second): first}
            inputs = tuple(
                replace(edge, tensor=other.get((edge.node, edge.tensor), edge.tensor))
                for edge in graph.input_edges
            )
            links = tuple(
                replace(link, to_tensor=other.get((link.to_node, link.to_tensor), link.to_tensor))
                for link in graph.intermediate_edges
            )
            yield (
                node,
                first,
                second,
                replace(graph, input_edges=inputs, intermediate_edges=links),
            )


def lacking(graph: Graph, relation: Relation) -> str | None:
    """Return why a graph has no other form for this relation; None if it has one.

    Every relation but `OWNED` needs two or more operator nodes.
    """
    if relation is Relation.OWNED:
        owned = any(tensor.Owned for tensor in graph.inputs.values())
        other = owned or _replaceable(graph)
        return None if other else "it has no constant and no owned input"
    if relation is Relation.EXPORTED and not _unexported(graph):
        return "every intermediate is an output already"
    return "it has a single node" if len(graph.operator_nodes) < 2 else None


def _unexported(graph: Graph) -> list[Slot]:
    out = {(edge.node, edge.tensor) for edge in graph.output_edges}
    links = ((link.from_node, link.from_tensor) for link in graph.intermediate_edges)
    constants = {node.name for node in graph.constants}
    return [slot for slot in dict.fromkeys(links) if slot not in out and slot[0] not in constants]


def exported(graph: Graph) -> Graph:
    """Return the graph with every intermediate as an output; the new outputs come last.

    The output of a constant is no intermediate.
    """
    outputs, edges = dict(graph.outputs), list(graph.output_edges)
    nodes = graph.by_name
    for node, tensor in _unexported(graph):
        name = f"{node}.{tensor}"
        outputs[name] = nodes[node].outputs[tensor]
        edges.append(OutputEdge(node, tensor, name))
    return replace(graph, outputs=outputs, output_edges=tuple(edges))


def reversed_nodes(graph: Graph) -> Graph:
    """Return the graph with its nodes and edges in the opposite order."""
    return replace(
        graph,
        nodes=graph.nodes[::-1],
        input_edges=graph.input_edges[::-1],
        intermediate_edges=graph.intermediate_edges[::-1],
        output_edges=graph.output_edges[::-1],
    )


def owned_otherwise(graph: Graph) -> Graph:
    """Return the graph with inputs instead of constants; only these inputs are OWNED_BY_DML.

    A constant that is an output of the graph stays: no edge can lead from an input to an output of
    the graph.
    """
    constants = {node.name: node for node in _replaceable(graph)}
    inputs = {name: flagged(tensor, owned=False) for name, tensor in graph.inputs.items()}
    inputs |= {name: flagged(node.tensor, owned=True) for name, node in constants.items()}
    edges = list(graph.input_edges)
    links = []
    for link in graph.intermediate_edges:
        if link.from_node in constants:
            edges.append(InputEdge(link.from_node, link.to_node, link.to_tensor))
        else:
            links.append(link)
    owned = {(edge.node, edge.tensor): edge.graph_input in constants for edge in edges}
    nodes = tuple(
        node_flagged(node, owned) if isinstance(node, Node) else node
        for node in graph.nodes
        if node.name not in constants
    )
    return replace(
        graph, inputs=inputs, nodes=nodes, input_edges=tuple(edges), intermediate_edges=tuple(links)
    )


def _replaceable(graph: Graph) -> list[Constant]:
    outputs = {edge.node for edge in graph.output_edges}
    return [node for node in graph.constants if node.name not in outputs]


def halves(graph: Graph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operator nodes' names in two halves; no node of the second feeds the first.

    A cycle raises `CycleError`.
    """
    names = [node.name for node in graph.in_order() if isinstance(node, Node)]
    middle = len(names) // 2
    return tuple(names[:middle]), tuple(names[middle:])


@dataclass(frozen=True, slots=True)
class Part:
    """Some nodes of a graph as a separate graph.

    Attributes:
        fed: by input of this graph, the node and output tensor of another part that compute it.
        gives: by output of this graph, the node and output tensor that feed it.
    """

    graph: Graph
    fed: dict[str, Slot]
    gives: dict[str, Slot]


def part(graph: Graph, names: Collection[str]) -> Part:
    """Return the named operator nodes as a separate graph, with the constants that feed them."""
    nodes = graph.by_name
    constants = {node.name for node in graph.constants}
    inputs: dict[str, TensorDesc] = {}
    fed: dict[str, Slot] = {}
    edges, links, used = [], [], set()
    for edge in graph.input_edges:
        if edge.node in names:
            inputs.setdefault(edge.graph_input, graph.inputs[edge.graph_input])
            edges.append(edge)
    for link in graph.intermediate_edges:
        if link.to_node not in names:
            continue
        slot = link.from_node, link.from_tensor
        if link.from_node in constants:
            used.add(link.from_node)
            links.append(link)
        elif link.from_node in names:
            links.append(link)
        else:
            name = ".".join(slot)
            inputs[name] = replace(nodes[link.from_node].outputs[link.from_tensor], Flags=())
            fed[name] = slot
            edges.append(InputEdge(name, link.to_node, link.to_tensor))
    gives = {".".join(slot): slot for slot in _used_outside(graph, names)}
    return Part(
        Graph(
            inputs=inputs,
            outputs={name: nodes[node].outputs[tensor] for name, (node, tensor) in gives.items()},
            nodes=tuple(node for node in graph.nodes if node.name in names or node.name in used),
            input_edges=tuple(edges),
            intermediate_edges=tuple(links),
            output_edges=tuple(OutputEdge(*slot, name) for name, slot in gives.items()),
        ),
        fed,
        gives,
    )


def _used_outside(graph: Graph, names: Collection[str]) -> Sequence[Slot]:
    """Return the outputs of the named nodes that feed unnamed nodes or outputs of the graph."""
    links = [
        (link.from_node, link.from_tensor)
        for link in graph.intermediate_edges
        if link.from_node in names and link.to_node not in names
    ]
    outs = [(edge.node, edge.tensor) for edge in graph.output_edges if edge.node in names]
    return list(dict.fromkeys([*links, *outs]))
