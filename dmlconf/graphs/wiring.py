"""Find what is wrong with a graph's edges, and with the descs of its nodes.

`catalogue.explanations` says which constraints of its operator a node's desc breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.explanations import explanations
from dmlconf.graphs.model import CycleError, Graph, Node

__all__ = ["WIRING_RULES", "WiringProblem", "edge_problems", "graph_problems", "wiring_problems"]

WIRING_RULES: Final = {
    "graph-has-output": "A graph has at least one output.",
    "edge-ends-exist": "Both ends of an edge exist, and each output of the graph is such an end.",
    "edge-size": "Both ends of an edge see a buffer of the same number of bytes.",
    "edge-data-type": "Both ends of an edge have the same data type.",
    "single-source": "At most one edge feeds an input tensor of a node.",
    "required-input": "An edge feeds each input tensor that a node's desc has.",
    "acyclic": "Nodes do not feed each other in a cycle.",
    "node-feeds-something": "A node feeds another node or is an output of the graph.",
    "owned-by-graph-input": "A tensor with the flag OWNED_BY_DML is fed by a graph input.",
    "owned-by-all-consumers": "All consumers of a graph input are OWNED_BY_DML, or none is.",
    "single-output-source": "At most one edge leads to an output of the graph.",
    "constant-size": "A constant has at least one byte.",
}
"""The rules for every graph, by the name that a rejection may state.

Source: the pages of DML_GRAPH_DESC and of the descs of edges, and measurements on DirectML 1.15.4,
which does not refuse graphs that break `edge-data-type` or `single-output-source`.
"""


@dataclass(frozen=True, slots=True)
class WiringProblem:
    """One problem of a graph.

    Attributes:
        rule: one of `WIRING_RULES`, or a constraint that a node's desc breaks.
        node: the node with the problem, which need not exist; empty for the graph or an output of
            it.
        tensor: the tensor or attribute of the node, or the output of the graph; may be empty.
        hint: what to do; None if the message says it all.
    """

    rule: str
    node: str
    tensor: str
    message: str
    hint: str | None = None


def graph_problems(graph: Graph) -> tuple[WiringProblem, ...]:
    """Return the problems of a graph's edges, and the enforced constraints that descs break."""
    return (*wiring_problems(graph), *_nodes(graph))


def wiring_problems(graph: Graph) -> tuple[WiringProblem, ...]:
    """Return the violations of `WIRING_RULES`; the constraints of operators are not checked.

    `edge-size`, `edge-data-type` and the rules on OWNED_BY_DML are checked for one edge of each
    input tensor, the one in `Graph.sources`.
    """
    return (
        *_ends(graph),
        *_outputs(graph),
        *_inputs(graph),
        *_fits(graph),
        *_owned(graph),
        *_order(graph),
        *_idle(graph),
        *_constants(graph),
    )


def edge_problems(graph: Graph) -> tuple[WiringProblem, ...]:
    """Return the problems of a graph that was valid before some of its edges were moved.

    The new source of an input must have the same desc as the old one, apart from Flags.
    """
    return (*_owned(graph), *_order(graph), *_idle(graph))


def _ends(graph: Graph) -> Iterator[WiringProblem]:
    nodes = graph.by_name
    rule = "edge-ends-exist"

    def missing(node: str, tensor: str, *, output: bool) -> str | None:
        if node not in nodes:
            return f"there is no node {node}"
        tensors = nodes[node].outputs if output else nodes[node].inputs
        kind = "output" if output else "input"
        return None if tensor in tensors else f"the node {node} has no {kind} {tensor}"

    for edge in graph.input_edges:
        if edge.graph_input not in graph.inputs:
            unknown = f"there is no graph input {edge.graph_input}"
            yield WiringProblem(rule, edge.node, edge.tensor, unknown)
        if message := missing(edge.node, edge.tensor, output=False):
            yield WiringProblem(rule, edge.node, edge.tensor, message)
    for link in graph.intermediate_edges:
        ends = (
            missing(link.from_node, link.from_tensor, output=True),
            missing(link.to_node, link.to_tensor, output=False),
        )
        for problem in filter(None, ends):
            yield WiringProblem(rule, link.to_node, link.to_tensor, problem)
    for out in graph.output_edges:
        if out.graph_output not in graph.outputs:
            unknown = f"there is no graph output {out.graph_output}"
            yield WiringProblem(rule, "", out.graph_output, unknown)
        if message := missing(out.node, out.tensor, output=True):
            yield WiringProblem(rule, "", out.graph_output, message)


def _outputs(graph: Graph) -> Iterator[WiringProblem]:
    if not graph.outputs:
        yield WiringProblem("graph-has-output", "", "", "the graph has no output")
    counts = Counter(edge.graph_output for edge in graph.output_edges)
    for name in graph.outputs:
        if counts[name] > 1:
            message = f"{counts[name]} edges lead to the graph output {name}"
            yield WiringProblem("single-output-source", "", name, message)
        elif not counts[name]:
            message = f"no edge leads to the graph output {name}"
            yield WiringProblem("edge-ends-exist", "", name, message)


def _inputs(graph: Graph) -> Iterator[WiringProblem]:
    counts = Counter((edge.node, edge.tensor) for edge in graph.input_edges)
    counts.update((edge.to_node, edge.to_tensor) for edge in graph.intermediate_edges)
    for node in graph.nodes:
        for name in node.inputs:
            count = counts[node.name, name]
            if count > 1:
                message = f"{count} edges feed {name} of the node {node.name}"
                yield WiringProblem("single-source", node.name, name, message)
            elif not count:
                message = f"nothing feeds {name} of the node {node.name}"
                yield WiringProblem("required-input", node.name, name, message)


def _fits(graph: Graph) -> Iterator[WiringProblem]:
    nodes = graph.by_name
    for (name, tensor), source in graph.sources().items():
        consumer = nodes[name].inputs.get(tensor) if name in nodes else None
        producer: TensorDesc | None
        if isinstance(source, str):
            producer, text = graph.inputs.get(source), f"the graph input {source}"
        else:
            feeder = nodes.get(source[0])
            producer = feeder.outputs.get(source[1]) if feeder else None
            text = f"{source[1]} of {source[0]}" if isinstance(feeder, Node) else source[0]
        if consumer is not None and producer is not None:
            yield from _edge(name, tensor, consumer, producer, text)


def _edge(
    node: str, tensor: str, consumer: TensorDesc, producer: TensorDesc, text: str
) -> Iterator[WiringProblem]:
    if consumer.DataType is not producer.DataType:
        message = f"{tensor} of {node} is {consumer.DataType}, but {text} is {producer.DataType}"
        hint = "convert it with a CAST node"
        yield WiringProblem("edge-data-type", node, tensor, message, hint)
    if not (_has_bytes(consumer) and _has_bytes(producer)):
        return  # The number of Strides is wrong; `_nodes` reports it for a node's desc.
    consumed, produced = consumer.TotalTensorSizeInBytes, producer.TotalTensorSizeInBytes
    if consumed != produced:
        message = (
            f"{tensor} of {node} has {consumed:,} bytes (Sizes {list(consumer.Sizes)}), but {text} "
            f"has {produced:,} (Sizes {list(producer.Sizes)})"
        )
        hint = "both ends of an edge see the same buffer; repeat elements by Strides of 0"
        yield WiringProblem("edge-size", node, tensor, message, hint)


def _has_bytes(tensor: TensorDesc) -> bool:
    """Return whether a tensor has no Strides or one for each size, so that its bytes are known."""
    return tensor.Strides is None or len(tensor.Strides) == len(tensor.Sizes)


def _owned(graph: Graph) -> Iterator[WiringProblem]:
    nodes = graph.by_name
    owned: dict[str, list[tuple[str, str, bool]]] = {}
    for (name, tensor), source in graph.sources().items():
        consumer = nodes[name].inputs.get(tensor) if name in nodes else None
        if consumer is None:
            continue
        is_owned = consumer.Owned
        if isinstance(source, str):
            owned.setdefault(source, []).append((name, tensor, is_owned))
        elif is_owned:
            message = f"{tensor} of {name} is OWNED_BY_DML, but {source[0]} feeds it"
            yield WiringProblem("owned-by-graph-input", name, tensor, message)
    for source, consumers in owned.items():
        if len({is_owned for _, _, is_owned in consumers}) > 1:
            name, tensor, _ = next(each for each in consumers if not each[2])
            message = f"{source} is OWNED_BY_DML elsewhere, but not in {tensor} of {name}"
            yield WiringProblem("owned-by-all-consumers", name, tensor, message)


def _order(graph: Graph) -> Iterator[WiringProblem]:
    try:
        graph.in_order()
    except CycleError as error:
        yield WiringProblem("acyclic", error.nodes[0], "", str(error))


def _idle(graph: Graph) -> Iterator[WiringProblem]:
    feeding = {edge.from_node for edge in graph.intermediate_edges}
    feeding |= {edge.node for edge in graph.output_edges}
    for node in graph.nodes:
        if node.name not in feeding:
            message = f"{node.name} feeds no node and is not an output of the graph"
            yield WiringProblem("node-feeds-something", node.name, "", message)


def _constants(graph: Graph) -> Iterator[WiringProblem]:
    for node in graph.constants:
        if not _has_bytes(node.tensor) or not node.tensor.TotalTensorSizeInBytes:
            message = f"the constant {node.name} has no bytes"
            yield WiringProblem("constant-size", node.name, "", message)


def _nodes(graph: Graph) -> Iterator[WiringProblem]:
    for node in graph.operator_nodes:
        for each in explanations(node.operator, node.desc):
            message = f"the node {node.name} breaks {each.constraint} of {node.operator_name}"
            yield WiringProblem(each.constraint, node.name, each.field, f"{message}: {each.text}")
