"""How a node is joined with its graph: the names that conditions over nodes may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dmlconf.expressions import Namespace
from dmlconf.faults.graphs.sequences import first_numbers, numbers_written
from dmlconf.graphs.model import Graph, Node, Slot

__all__ = ["joins_of"]

_COPY: Final = "ELEMENT_WISE_IDENTITY"


def joins_of(graph: Graph, node: Node) -> Namespace:
    """Return the names for one of the graph's nodes, with their values.

    - `OperatorName`: the node's own operator
    - `Feeder`: the operator of the node that makes the node's first input, "" if none does
    - `Consumers`: how many nodes read the node's outputs
    - `OutputNumbers`: the indices of the graph's outputs that the node feeds
    - `NumbersWritten`: what `numbers_written` returns for the node's operator
    - `OutputOperators`: the operator of the node that feeds each output of the graph
    - `FirstNumbers`: what `first_numbers` returns
    - `ReadAs`: for each edge to a node that reads the node's outputs, its operator and the sizes
      with which it reads
    - `Readers`: the operators of the nodes that read the node's outputs, one for each edge, and ""
      for each edge to an output of the graph. For an ELEMENT_WISE_IDENTITY that does not scale, it
      has the readers of the copy.
    - `InPlaceReaders`: those of `Readers` that may write an output in place of what they read
    - `SourceReaders`: the readers of the tensor that the node's first input takes. If that is a
      copy, they are those of the original. Empty if an input or a constant of the graph feeds it.
    """
    edges = graph.intermediate_edges
    outputs = {edge.graph_output for edge in graph.output_edges if edge.node == node.name}
    sources = graph.output_sources()
    feeding = [sources[name][0] if name in sources else "" for name in graph.outputs]
    nodes = {each.name: each for each in graph.operator_nodes}
    readers = [
        reader for tensor in node.outputs for reader in _readers(graph, nodes, (node.name, tensor))
    ]
    feeder, source = _feeder(graph, nodes, node), _original(graph, nodes, node)
    return {
        "OperatorName": node.operator_name,
        "Feeder": nodes[feeder[0]].operator_name if feeder is not None else "",
        "Consumers": len({edge.to_node for edge in edges if edge.from_node == node.name}),
        "OutputNumbers": tuple(n for n, name in enumerate(graph.outputs) if name in outputs),
        "NumbersWritten": tuple(numbers_written(graph, node.operator_name).values()),
        "OutputOperators": tuple(
            nodes[name].operator_name if name in nodes else "" for name in feeding
        ),
        "FirstNumbers": first_numbers(graph),
        "ReadAs": tuple(
            (reader.operator_name, reader.inputs[edge.to_tensor].Sizes)
            for edge in edges
            if edge.from_node == node.name
            and (reader := nodes.get(edge.to_node)) is not None
            and edge.to_tensor in reader.inputs
        ),
        "Readers": tuple(operator for operator, _ in readers),
        "InPlaceReaders": tuple(operator for operator, in_place in readers if in_place),
        "SourceReaders": (
            () if source is None else tuple(name for name, _ in _readers(graph, nodes, source))
        ),
    }


def _is_copy(node: Node) -> bool:
    if node.operator_name != _COPY:
        return False
    scale = node.desc.get("ScaleBias")
    return scale is None or (scale["Scale"], scale["Bias"]) == (1, 0)


def _readers(graph: Graph, nodes: Mapping[str, Node], slot: Slot) -> Iterator[tuple[str, bool]]:
    """Yield the operator of each reader of a tensor, and whether it may write in its place."""
    ends, seen = [slot], {slot}
    while ends:
        end = ends.pop()
        yield from (("", False) for edge in graph.output_edges if (edge.node, edge.tensor) == end)
        for edge in graph.intermediate_edges:
            reader = nodes.get(edge.to_node)
            if (edge.from_node, edge.from_tensor) != end or reader is None:
                continue
            copy = reader.name, "OutputTensor"
            if _is_copy(reader):
                ends += [] if copy in seen else [copy]
                seen.add(copy)
                continue
            shared = (each.input for each in reader.operator.in_place)
            yield reader.operator_name, edge.to_tensor in shared


def _feeder(graph: Graph, nodes: Mapping[str, Node], node: Node) -> Slot | None:
    """Return the output tensor that a node's first input takes; None if it is not of a node."""
    source = graph.sources().get((node.name, next(iter(node.inputs), "")))
    return source if isinstance(source, tuple) and source[0] in nodes else None


def _original(graph: Graph, nodes: Mapping[str, Node], node: Node) -> Slot | None:
    """Return the output tensor that a node's first input takes, behind all copies; None if none."""
    seen: set[str] = set()
    while node.name not in seen:
        seen.add(node.name)
        source = _feeder(graph, nodes, node)
        if source is None or not _is_copy(nodes[source[0]]):
            return source
        node = nodes[source[0]]
    return None
