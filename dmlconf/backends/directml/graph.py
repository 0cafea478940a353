"""Compile an operator as a graph of one node, as applications do that compile whole models."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dmlconf.backends.directml import dml
from dmlconf.backends.directml.placement import Place, Placement
from dmlconf.backends.directml.vtable import ComObject

__all__ = [
    "DML_GRAPH_DESC",
    "DML_GRAPH_EDGE_DESC",
    "DML_GRAPH_NODE_DESC",
    "DML_INPUT_GRAPH_EDGE_DESC",
    "DML_OPERATOR_GRAPH_NODE_DESC",
    "DML_OUTPUT_GRAPH_EDGE_DESC",
    "compile_graph",
]

UINT: Final = ctypes.c_uint32
POINTER: Final = ctypes.c_void_p

_NODE_OPERATOR: Final = 1
_EDGE_INPUT: Final = 1
_EDGE_OUTPUT: Final = 2


class DML_OPERATOR_GRAPH_NODE_DESC(ctypes.Structure):
    """An operator as a node."""

    _fields_ = (("Operator", POINTER), ("Name", POINTER))


class DML_GRAPH_NODE_DESC(ctypes.Structure):
    """A node of any type."""

    _fields_ = (("Type", UINT), ("Desc", POINTER))


class DML_INPUT_GRAPH_EDGE_DESC(ctypes.Structure):
    """From an input of the graph to an input of a node."""

    _fields_ = (
        ("GraphInputIndex", UINT),
        ("ToNodeIndex", UINT),
        ("ToNodeInputIndex", UINT),
        ("Name", POINTER),
    )


class DML_OUTPUT_GRAPH_EDGE_DESC(ctypes.Structure):
    """From an output of a node to an output of the graph."""

    _fields_ = (
        ("FromNodeIndex", UINT),
        ("FromNodeOutputIndex", UINT),
        ("GraphOutputIndex", UINT),
        ("Name", POINTER),
    )


class DML_GRAPH_EDGE_DESC(ctypes.Structure):
    """An edge of any type."""

    _fields_ = (("Type", UINT), ("Desc", POINTER))


class DML_GRAPH_DESC(ctypes.Structure):
    """A graph."""

    _fields_ = (
        ("InputCount", UINT),
        ("OutputCount", UINT),
        ("NodeCount", UINT),
        ("Nodes", POINTER),
        ("InputEdgeCount", UINT),
        ("InputEdges", POINTER),
        ("OutputEdgeCount", UINT),
        ("OutputEdges", POINTER),
        ("IntermediateEdgeCount", UINT),
        ("IntermediateEdges", POINTER),
    )


def compile_graph(
    device: ComObject, operator: ComObject, placement: Placement, flags: dml.DML_EXECUTION_FLAGS
) -> ComObject:
    """Return the compiled graph, whose inputs and outputs are the present tensors in order.

    Args:
        device: the IDMLDevice.
        operator: the IDMLOperator.
        placement: tells which tensors are present.
        flags: how to compile.

    Raises:
        HResultError: DirectML is older than feature level 2_1, or refuses the graph.
    """
    node = DML_OPERATOR_GRAPH_NODE_DESC(operator.address, None)
    nodes = DML_GRAPH_NODE_DESC(_NODE_OPERATOR, ctypes.addressof(node))
    inputs = [
        DML_INPUT_GRAPH_EDGE_DESC(index, 0, slot, None)
        for index, slot in enumerate(_present(placement.inputs))
    ]
    outputs = [
        DML_OUTPUT_GRAPH_EDGE_DESC(0, slot, index, None)
        for index, slot in enumerate(_present(placement.outputs))
    ]
    input_edges = _edges(_EDGE_INPUT, inputs)
    output_edges = _edges(_EDGE_OUTPUT, outputs)
    graph = DML_GRAPH_DESC(
        len(inputs), len(outputs), 1, ctypes.addressof(nodes),
        len(inputs), ctypes.addressof(input_edges),
        len(outputs), ctypes.addressof(output_edges), 0, None,
    )  # fmt: skip
    with device.create("QueryInterface", dml.IDML_DEVICE1) as newer:
        return newer.create("CompileGraph", dml.IDML_COMPILED_OPERATOR, ctypes.byref(graph), flags)


def _present(places: Iterable[Place | None]) -> list[int]:
    return [slot for slot, place in enumerate(places) if place is not None]


def _edges(kind: int, descs: Sequence[ctypes.Structure]) -> Any:
    edges = (DML_GRAPH_EDGE_DESC * max(len(descs), 1))()
    for index, desc in enumerate(descs):
        edges[index] = DML_GRAPH_EDGE_DESC(kind, ctypes.addressof(desc))
    return edges
