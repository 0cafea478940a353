"""Write a graph in the form of a case file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import Field
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.graphs.model import CONSTANT_TENSOR, Graph, Node, Slot

__all__ = ["graph_parts", "reference"]


def graph_parts(
    graph: Graph,
    values: Mapping[str, Any],
    tensor_entry: Callable[[TensorDesc], dict[str, Any]],
    plain: Callable[[Any], Any],
) -> dict[str, Any]:
    """Return the parts of a case's entry that describe the graph.

    The copy `step[3]` of a repeated node becomes a node `step-3`. A node or a constant that is
    named like a graph input or output gets another name.

    Args:
        values: the data of graph inputs and constants, by name: a list of numbers or
            `{"file": NAME}`.
        tensor_entry: returns a tensor's desc as a case file has it.
        plain: returns an attribute's value as a case file has it.
    """
    names = _names(graph)
    sources: dict[Slot, list[str]] = {}
    for edge in graph.input_edges:
        sources.setdefault((edge.node, edge.tensor), []).append(edge.graph_input)
    for link in graph.intermediate_edges:
        text = reference(names.get(link.from_node, link.from_node), link.from_tensor)
        sources.setdefault((link.to_node, link.to_tensor), []).append(text)

    outputs: dict[str, list[str]] = {}
    for out in graph.output_edges:
        text = reference(names.get(out.node, out.node), out.tensor)
        outputs.setdefault(out.graph_output, []).append(text)

    def tensor(node: Node, name: str, desc: TensorDesc) -> dict[str, Any]:
        fed = sources.get((node.name, name), [])
        start = {"from": _one_or_list(fed)} if fed else {}
        return {**start, **tensor_entry(desc)}

    def field(node: Node, entry: Field) -> Any:
        value = node.desc[entry.name]
        if not entry.is_tensor:
            return plain(value)
        if entry.is_array:
            return [
                tensor(node, str(TensorRef(entry.name, i)), each) for i, each in enumerate(value)
            ]
        return tensor(node, entry.name, value)

    def with_values(name: str, desc: TensorDesc) -> dict[str, Any]:
        data = {"values": values[name]} if name in values else {}
        return {**tensor_entry(desc), **data}

    parts: dict[str, Any] = {
        "inputs": {name: with_values(name, desc) for name, desc in graph.inputs.items()},
        "constants": {
            names[part.name]: with_values(part.name, part.tensor) for part in graph.constants
        },
        "nodes": {
            names[node.name]: {
                "operator": node.operator_name,
                "desc": {
                    entry.name: field(node, entry)
                    for entry in node.operator.fields
                    if entry.name not in node.operator.count_fields
                    and node.desc[entry.name] is not None
                },
            }
            for node in graph.operator_nodes
        },
        "outputs": {name: _one_or_list(texts) for name, texts in outputs.items()},
    }
    return {key: value for key, value in parts.items() if value or key == "outputs"}


def _one_or_list(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else texts


def reference(node: str, tensor: str) -> str:
    """Return how a case file names a node's output, `NODE.TENSOR`, or a constant, `NODE`.

    The tensor of a constant is called OutputTensor. An operator's output of that name is written as
    `NODE` alone, too, which means the node's first output: an OutputTensor is always the first.
    """
    return node if tensor == CONSTANT_TENSOR else f"{node}.{tensor}"


def _names(graph: Graph) -> dict[str, str]:
    names: dict[str, str] = {}
    used = {*graph.inputs, *graph.outputs}
    for node in graph.nodes:
        name = re.sub(r"[^\w-]+", "-", node.name).strip("-")
        while name in used:
            name += "-"
        used.add(name)
        names[node.name] = name
    return names
