"""Graphs whose FLOAT16 edges hold FLOAT32, as a fused kernel may hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dmlconf.cases.graph_case import GraphCase, with_graph
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import FieldKind
from dmlconf.graphs.model import Node
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "with_float32_edges",
]


def with_float32_edges(case: Case) -> GraphCase:
    """Return the graph with FLOAT32 instead of FLOAT16 inputs and outputs of most nodes.

    Constants, the output of CAST, and nodes with an attribute of the tensors' data type keep their
    data types.
    """
    graph = case.graph
    nodes = tuple(
        replace(node, desc=_wider_desc(node)) if isinstance(node, Node) else node
        for node in graph.nodes
    )
    return with_graph(case, replace(graph, nodes=nodes))


def _wider_desc(node: Node) -> dict[str, Any]:
    operator, desc = node.operator, dict(node.desc)
    if any(field.type_field for field in operator.fields):
        return desc  # Such an attribute would no longer have the tensors' data type.
    kinds = [FieldKind.INPUT]
    if operator.name != "CAST":
        kinds.append(FieldKind.OUTPUT)
    for field in operator.of_kind(*kinds):
        value = desc[field.name]
        if isinstance(value, TensorDesc):
            desc[field.name] = _wider_tensor(value)
        elif value is not None:
            desc[field.name] = tuple(map(_wider_tensor, value))
    return desc


def _wider_tensor(tensor: TensorDesc) -> TensorDesc:
    if tensor.DataType is not DataType.FLOAT16:
        return tensor
    return replace(tensor, DataType=DataType.FLOAT32, DeclaredTensorSizeInBytes=None)
