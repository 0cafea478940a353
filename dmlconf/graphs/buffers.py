"""Which inputs of a graph DirectML may own, and which outputs may share an input's buffer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dmlconf.catalogue.constraints import violations
from dmlconf.catalogue.desc import OWNED, TensorDesc
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.graphs.model import Graph, Node, Slot

__all__ = [
    "flagged",
    "in_place_pairs",
    "may_share_buffers",
    "node_flagged",
    "ownable_inputs",
    "with_owned_inputs",
]


def flagged(tensor: TensorDesc, *, owned: bool) -> TensorDesc:
    """Return a tensor with the flag OWNED_BY_DML, or without it."""
    others = tuple(flag for flag in tensor.Flags if flag != OWNED)
    return replace(tensor, Flags=(*others, OWNED) if owned else others)


def node_flagged(node: Node, owned: Mapping[Slot, bool]) -> Node:
    """Return a node, with OWNED_BY_DML set or cleared on those inputs that are in the mapping."""
    desc: dict[str, Any] = dict(node.desc)
    for name, tensor in node.inputs.items():
        if (node.name, name) not in owned:
            continue
        changed = flagged(tensor, owned=owned[node.name, name])
        desc = TensorRef.of(name).replaced(desc, changed)
    return replace(node, desc=desc)


def ownable_inputs(graph: Graph) -> tuple[str, ...]:
    """Return the graph inputs that are not owned, although each consumer permits OWNED_BY_DML.

    Inputs without a consumer are left out, and the first input, since applications usually compute
    it anew for each execution.
    """
    consumers: dict[str, list[Slot]] = {}
    for edge in graph.input_edges:
        consumers.setdefault(edge.graph_input, []).append((edge.node, edge.tensor))
    return tuple(
        name
        for name, tensor in list(graph.inputs.items())[1:]
        if not tensor.Owned
        and name in consumers
        and all(_permits_owned(graph, slot) for slot in consumers[name])
    )


def _permits_owned(graph: Graph, slot: Slot) -> bool:
    node = graph.by_name[slot[0]]
    if not isinstance(node, Node):
        return False
    broken = violations(node.operator, node_flagged(node, {slot: True}).desc)
    return set(broken) <= set(violations(node.operator, node.desc))


def with_owned_inputs(graph: Graph, names: Collection[str]) -> Graph:
    """Return the graph with these inputs, and the tensors that they feed, owned by DirectML."""
    inputs = {
        name: flagged(tensor, owned=True) if name in names else tensor
        for name, tensor in graph.inputs.items()
    }
    edges = (edge for edge in graph.input_edges if edge.graph_input in names)
    owned = {(edge.node, edge.tensor): True for edge in edges}
    nodes = tuple(
        node_flagged(node, owned) if isinstance(node, Node) else node for node in graph.nodes
    )
    return replace(graph, inputs=inputs, nodes=nodes)


def may_share_buffers(graph: Graph) -> bool:
    """Return whether outputs of a graph that CompileGraph compiles may share buffers of its inputs.

    Only a graph of one operator with packed tensors may share the buffers that the operator's page
    permits. No page permits more: DirectML may write copies and intermediates into the memory of an
    output before it has read all inputs.

    Measured in place on DirectML 1.15.4: all 25 graphs of one operator with packed tensors were
    right. Wrong were 32 of 56 graphs of several operators, and 72 of 3,380 graphs of one operator
    with other strides.
    """
    nodes = graph.operator_nodes
    return len(nodes) == 1 and all(
        tensor.Packed
        for node in nodes
        for tensor in (*node.inputs.values(), *node.outputs.values())
    )


def in_place_pairs(graph: Graph) -> tuple[tuple[str, str], ...]:
    """Return pairs of an output and an input that may share a buffer, in a graph of one operator.

    The operator's page must permit the pair, and only one edge may leave the input. Both tensors
    must have the same layout in the graph's desc as in the operator's. A graph with more or fewer
    operators raises a ValueError.
    """
    [node] = graph.operator_nodes
    readers = Counter(edge.graph_input for edge in graph.input_edges)
    sources = graph.sources()
    pairs = []
    for output, slot in graph.output_sources().items():
        for pair in node.operator.in_place:
            source = sources.get((node.name, pair.input))
            given = slot == (node.name, pair.output)
            if not given or not isinstance(source, str) or readers[source] > 1:
                continue
            ends = (
                (node.inputs[pair.input], graph.inputs[source]),
                (node.outputs[pair.output], graph.outputs[output]),
            )
            if all(_same_layout(*end) for end in ends):
                pairs.append((output, source))
    return tuple(pairs)


def _same_layout(one: TensorDesc, other: TensorDesc) -> bool:
    return (one.DataType, one.Sizes, one.Strides) == (other.DataType, other.Sizes, other.Strides)
