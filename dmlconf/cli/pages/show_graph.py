"""The nodes and edges of a graph as lines of text, for `dmlconf show`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import FieldKind
from dmlconf.graphs.model import CONSTANT_TENSOR, Constant, Graph, Node, Slot

__all__ = ["graph_lines"]


def graph_lines(
    graph: Graph, tensor_text: Callable[[TensorDesc], str], value_text: Callable[[Any], str]
) -> Iterator[str]:
    """Yield lines on each node: the sources of inputs, the targets of outputs, and attributes.

    Attributes without a value and lengths of arrays, such as AxisCount, are left out.

    Args:
        tensor_text: formats a tensor's desc.
        value_text: formats the value of an attribute.
    """
    sources, targets = graph.sources(), _targets(graph)
    for node in graph.nodes:
        if isinstance(node, Constant):
            yield f"{node.name}  constant  {tensor_text(node.tensor)}"
            yield f"  to {_listed(targets.get((node.name, CONSTANT_TENSOR)))}"
            continue
        yield f"{node.name}  {node.operator_name}"
        rows = [
            (name, f"from {_source_text(sources.get((node.name, name)))}", tensor_text(tensor))
            for name, tensor in node.inputs.items()
        ]
        rows += [
            (name, f"to {_listed(targets.get((node.name, name)))}", tensor_text(tensor))
            for name, tensor in node.outputs.items()
        ]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        for name, end, tensor in rows:
            yield f"  {name:<{widths[0]}}  {end:<{widths[1]}}  {tensor}"
        attributes = _attributes(node, value_text)
        if attributes:
            yield f"  {attributes}"


def _targets(graph: Graph) -> dict[Slot, list[str]]:
    targets: dict[Slot, list[str]] = {}
    for link in graph.intermediate_edges:
        end = f"{link.to_node}.{link.to_tensor}"
        targets.setdefault((link.from_node, link.from_tensor), []).append(end)
    for edge in graph.output_edges:
        end = f"the output {edge.graph_output}"
        targets.setdefault((edge.node, edge.tensor), []).append(end)
    return targets


def _source_text(source: str | Slot | None) -> str:
    if source is None:
        return "nothing"
    if isinstance(source, str):
        return f"the input {source}"
    node, tensor = source
    return f"{node}.{tensor}"


def _listed(ends: list[str] | None) -> str:
    return ", ".join(ends) if ends else "nothing"


def _attributes(node: Node, value_text: Callable[[Any], str]) -> str:
    counts = node.operator.count_fields
    return ", ".join(
        f"{field.name} {value_text(node.desc[field.name])}"
        for field in node.operator.of_kind(FieldKind.ATTRIBUTE)
        if field.name not in counts and node.desc[field.name] is not None
    )
