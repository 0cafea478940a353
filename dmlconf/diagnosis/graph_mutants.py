"""Mutants: wrong graphs that a compiler may make of a graph.

`mutants_of` changes edges and drops nodes, but keeps inputs and outputs. For example, two different
nodes are merged, a node overwrites a tensor that is read later, or two operands are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from dmlconf.cases.model import Fill
from dmlconf.graphs.model import Graph, IntermediateEdge, Node, OutputEdge, Slot
from dmlconf.graphs.relations import alike_descs, swapped_inputs
from dmlconf.graphs.wiring import edge_problems
from dmlconf.tensors.datatypes import Array

__all__ = ["Mutant", "mutants_of"]


@dataclass(frozen=True)
class Mutant:
    """What a compiler may run instead of a graph.

    Attributes:
        what: what the compiler does wrongly, such as "ATensor and BTensor of n1 are exchanged".
        rewrite: the name of the rewrite in `schemas/rewrites.yaml`.
        data: the data of the graph's inputs; None for the data of the case.
    """

    what: str
    rewrite: str
    graph: Graph
    data: Mapping[str, Array | Fill] | None = None


def mutants_of(graph: Graph) -> Iterator[Mutant]:
    """Yield the mutants of a graph; kinds with few mutants come first."""
    for mutant in (
        *_merged(graph),
        *_overwritten(graph),
        *_other_outputs(graph),
        *_swapped(graph),
        *_left_out(graph),
        *_reused(graph),
    ):
        read = _without_unread(mutant.graph)
        if read != graph and not edge_problems(read):
            yield replace(mutant, graph=read)


def _without_unread(graph: Graph) -> Graph:
    feeders: dict[str, set[str]] = {node.name: set() for node in graph.nodes}
    for link in graph.intermediate_edges:
        feeders[link.to_node].add(link.from_node)
    left, read = {edge.node for edge in graph.output_edges}, set[str]()
    while left:
        read |= left
        left = set().union(*(feeders[name] for name in left)) - read
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.name in read),
        input_edges=tuple(edge for edge in graph.input_edges if edge.node in read),
        intermediate_edges=tuple(link for link in graph.intermediate_edges if link.to_node in read),
    )


_MERGING: Final[Mapping[str, str]] = {
    "GEMM": "products",
    "CONVOLUTION": "convolutions",
    "REDUCE": "reductions",
    "SLICE1": "slices",
    "SLICE": "slices",
    "CAST": "casts",
    "PADDING": "paddings",
    "PADDING1": "paddings",
    "GATHER": "gathers",
    "GATHER_ELEMENTS": "lookups",
    "ONE_HOT": "lookups",
    "TOP_K": "sorts",
    "TOP_K1": "sorts",
    "ARGMAX": "searches",
    "ARGMIN": "searches",
    "ELEMENT_WISE_CLIP": "clips",
    "ELEMENT_WISE_CLIP1": "clips",
    "ELEMENT_WISE_QUANTIZE_LINEAR": "quantizations",
    "CUMULATIVE_SUMMATION": "scans",
    "ELEMENT_WISE_ROUND": "roundings",
    "ELEMENT_WISE_FLOOR": "roundings",
    "ELEMENT_WISE_CEIL": "roundings",
    "ELEMENT_WISE_LOGICAL_EQUALS": "comparisons",
}
"""The last part of a rewrite's name `merge-equal-...`, by the operator that it merges."""


_MERGING_FAMILIES: Final = (
    ("POOLING", "poolings"),
    ("NORMALIZATION", "normalizations"),
    ("RESAMPLE", "resamplings"),
    ("SOFTMAX", "softmaxes"),
    ("HARDMAX", "softmaxes"),
    ("SCATTER", "scatters"),
    ("FILL_VALUE", "fills"),
    ("DEPTH", "rearrangements"),
    ("_IS_", "tests"),
    ("_THAN", "comparisons"),
)
"""The same for other operators, by a part of their names."""


def _merging(operator: str) -> str:
    general = next((name for part, name in _MERGING_FAMILIES if part in operator), None)
    default = "activations" if operator.startswith("ACTIVATION_") else "binary-nodes"
    return f"merge-equal-{_MERGING.get(operator) or general or default}"


def _merged(graph: Graph) -> Iterator[Mutant]:
    nodes = [node for node in graph.in_order() if isinstance(node, Node)]
    for first, second in combinations(nodes, 2):
        if first.operator_name != second.operator_name or first.outputs != second.outputs:
            continue
        differences = _differences(graph, first, second)
        if len(differences) == 1:
            for one, other in ((first, second), (second, first)):
                yield Mutant(
                    f"{differences[0]} of {one.name} serves {other.name} as well",
                    _merging(one.operator_name),
                    _fed_by(graph, {(other.name, t): (one.name, t) for t in one.outputs}),
                )


def _differences(graph: Graph, first: Node, second: Node) -> list[str]:
    sources = graph.sources()
    fields = [
        entry.name
        for entry in first.operator.fields
        if first.desc[entry.name] != second.desc[entry.name]
    ]
    fields += [
        name
        for name in first.inputs
        if sources.get((first.name, name)) != sources.get((second.name, name))
    ]
    return list(dict.fromkeys(fields))


def _fed_by(
    graph: Graph, changes: Mapping[Slot, Slot], readers: frozenset[Slot] | None = None
) -> Graph:
    """Return the graph in which nodes and graph outputs read other tensors.

    Args:
        changes: for some tensors, the tensor that is read instead.
        readers: the inputs of nodes that change; None to change all inputs and graph outputs.
    """

    def of_link(link: IntermediateEdge) -> IntermediateEdge:
        if readers is not None and (link.to_node, link.to_tensor) not in readers:
            return link
        node, tensor = changes.get((link.from_node, link.from_tensor), link_from(link))
        return IntermediateEdge(node, tensor, link.to_node, link.to_tensor)

    def link_from(link: IntermediateEdge) -> Slot:
        return link.from_node, link.from_tensor

    def of_output(edge: OutputEdge) -> OutputEdge:
        if readers is not None:
            return edge
        node, tensor = changes.get((edge.node, edge.tensor), (edge.node, edge.tensor))
        return OutputEdge(node, tensor, edge.graph_output)

    return replace(
        graph,
        intermediate_edges=tuple(map(of_link, graph.intermediate_edges)),
        output_edges=tuple(map(of_output, graph.output_edges)),
    )


def _overwritten(graph: Graph) -> Iterator[Mutant]:
    nodes = graph.by_name
    for link in graph.intermediate_edges:
        writer, operand = nodes[link.to_node], (link.from_node, link.from_tensor)
        if not isinstance(nodes[link.from_node], Node):
            continue
        for name, tensor in writer.outputs.items():
            if not alike_descs(tensor, nodes[operand[0]].outputs[operand[1]]):
                continue
            result = writer.name, name
            others = frozenset(
                (each.to_node, each.to_tensor)
                for each in graph.intermediate_edges
                if (each.from_node, each.from_tensor) == operand and each.to_node != writer.name
            )
            what = f"{writer.name} writes over what {operand[0]} gives, which is read later"
            if others:
                changed = _fed_by(graph, {operand: result}, others)
                yield Mutant(what, "write-in-place", changed)
            outputs = tuple(
                replace(edge, node=result[0], tensor=result[1])
                if (edge.node, edge.tensor) == operand
                else edge
                for edge in graph.output_edges
            )
            if outputs != graph.output_edges:
                base = _fed_by(graph, {operand: result}, others)
                yield Mutant(what, "write-in-place", replace(base, output_edges=outputs))


def _other_outputs(graph: Graph) -> Iterator[Mutant]:
    for node in graph.operator_nodes:
        for one, other in combinations(node.outputs, 2):
            if not alike_descs(node.outputs[one], node.outputs[other]):
                continue
            for wrong, right in ((one, other), (other, one)):
                yield Mutant(
                    f"{wrong} of {node.name} is read instead of {right}",
                    "drop-unused-output",
                    _fed_by(graph, {(node.name, right): (node.name, wrong)}),
                )
            swap = {(node.name, one): (node.name, other), (node.name, other): (node.name, one)}
            what = f"{one} and {other} of {node.name} are exchanged"
            yield Mutant(what, "drop-unused-output", _fed_by(graph, swap))


def _swapped(graph: Graph) -> Iterator[Mutant]:
    for node, first, second, swapped in swapped_inputs(graph):
        what = f"{first} and {second} of {node.name} are exchanged"
        yield Mutant(what, "sort-operands", swapped)


def _left_out(graph: Graph) -> Iterator[Mutant]:
    sources = graph.sources()
    for node in graph.operator_nodes:
        for name, tensor in node.outputs.items():
            for given, own in node.inputs.items():
                source = sources.get((node.name, given))
                if isinstance(source, tuple) and alike_descs(tensor, own):
                    yield Mutant(
                        f"{node.name} is left out, and what reads it gets its {given}",
                        "remove-copy",
                        _fed_by(graph, {(node.name, name): source}),
                    )


def _reused(graph: Graph) -> Iterator[Mutant]:
    """Yield graphs in which a node reads another tensor, as if both tensors shared a buffer."""
    nodes = graph.by_name
    slots = [(node.name, name) for node in graph.operator_nodes for name in node.outputs]
    for link in graph.intermediate_edges:
        own = link.from_node, link.from_tensor
        tensor = nodes[own[0]].outputs[own[1]]
        for other in slots:
            if other != own and alike_descs(nodes[other[0]].outputs[other[1]], tensor):
                readers = frozenset({(link.to_node, link.to_tensor)})
                yield Mutant(
                    f"{other[0]} writes where {link.to_node} reads {link.to_tensor}",
                    "reuse-buffer",
                    _fed_by(graph, {own: other}, readers),
                )
