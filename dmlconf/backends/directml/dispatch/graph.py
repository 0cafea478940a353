"""Create operators, and compile graphs of them with IDMLDevice1::CompileGraph."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from contextlib import ExitStack
from enum import IntEnum
from typing import Any, Final

import numpy as np

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.structs import NativeDesc
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.dispatch.placement import encode
from dmlconf.cases.plans import GraphPlan
from dmlconf.graphs.model import Constant, GraphNode, Node

__all__ = [
    "DML_CONSTANT_DATA_GRAPH_NODE_DESC",
    "DML_GRAPH_DESC",
    "DML_GRAPH_EDGE_DESC",
    "DML_GRAPH_EDGE_TYPE",
    "DML_GRAPH_NODE_DESC",
    "DML_GRAPH_NODE_TYPE",
    "DML_INPUT_GRAPH_EDGE_DESC",
    "DML_INTERMEDIATE_GRAPH_EDGE_DESC",
    "DML_OPERATOR_GRAPH_NODE_DESC",
    "DML_OUTPUT_GRAPH_EDGE_DESC",
    "NodeRefusalError",
    "compile_graph",
    "create_operator",
]

UINT: Final = ctypes.c_uint32
POINTER: Final = ctypes.c_void_p


class DML_GRAPH_NODE_TYPE(IntEnum):
    """Types of nodes."""

    INVALID = 0
    OPERATOR = 1
    CONSTANT = 2


class DML_GRAPH_EDGE_TYPE(IntEnum):
    """Types of edges."""

    INVALID = 0
    INPUT = 1
    OUTPUT = 2
    INTERMEDIATE = 3


class DML_OPERATOR_GRAPH_NODE_DESC(ctypes.Structure):
    """An operator as a node."""

    _fields_ = (("Operator", POINTER), ("Name", ctypes.c_char_p))


class DML_CONSTANT_DATA_GRAPH_NODE_DESC(ctypes.Structure):
    """Data as a node, since feature level 6_2."""

    _fields_ = (("Data", POINTER), ("DataSize", ctypes.c_size_t), ("Name", ctypes.c_char_p))


class DML_GRAPH_NODE_DESC(ctypes.Structure):
    """A node of any type."""

    _fields_ = (("Type", UINT), ("Desc", POINTER))


class DML_INPUT_GRAPH_EDGE_DESC(ctypes.Structure):
    """An edge from an input of the graph to an input of a node."""

    _fields_ = (
        ("GraphInputIndex", UINT),
        ("ToNodeIndex", UINT),
        ("ToNodeInputIndex", UINT),
        ("Name", ctypes.c_char_p),
    )


class DML_OUTPUT_GRAPH_EDGE_DESC(ctypes.Structure):
    """An edge from an output of a node to an output of the graph."""

    _fields_ = (
        ("FromNodeIndex", UINT),
        ("FromNodeOutputIndex", UINT),
        ("GraphOutputIndex", UINT),
        ("Name", ctypes.c_char_p),
    )


class DML_INTERMEDIATE_GRAPH_EDGE_DESC(ctypes.Structure):
    """An edge from an output of a node to an input of another."""

    _fields_ = (
        ("FromNodeIndex", UINT),
        ("FromNodeOutputIndex", UINT),
        ("ToNodeIndex", UINT),
        ("ToNodeInputIndex", UINT),
        ("Name", ctypes.c_char_p),
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


class NodeRefusalError(HResultError):
    """CreateOperator failed for the node `node`, whose name is empty for a lone operator."""

    def __init__(self, node: str, error: HResultError) -> None:
        super().__init__(error.call, error.hresult)
        self.node = node


def create_operator(device: ComObject, node: Node) -> ComObject:
    """Return the IDMLOperator of a node; `device` is the IDMLDevice.

    Raises:
        NodeRefusalError: DirectML refuses the desc, or the device is gone.
        KeyError, UnknownOperatorError, OverflowError, ValueError: as in `NativeDesc`.
        NativeCrashError: DirectML crashed.
    """
    desc = NativeDesc(node.operator, node.desc)
    try:
        return device.create("CreateOperator", dml.IDML_OPERATOR, ctypes.byref(desc.structure))
    except HResultError as error:
        raise NodeRefusalError(node.name, error) from error


def compile_graph(device: ComObject, plan: GraphPlan, flags: dml.DML_EXECUTION_FLAGS) -> ComObject:
    """Return the compiled graph; `device` is the IDMLDevice.

    Raises:
        NodeRefusalError: CreateOperator fails for a node.
        KeyError, UnknownOperatorError, OverflowError, ValueError: as in `create_operator`.
        IndexError: a constant declares a size that is too small for its elements.
        HResultError: DirectML is older than feature level 2_1 or refuses the graph, or the device
            is gone.
        NativeCrashError: DirectML crashed.
    """
    with ExitStack() as owner:
        desc = _NativeGraph(device, plan, owner)
        newer = owner.enter_context(device.create("QueryInterface", dml.IDML_DEVICE1))
        graph = ctypes.byref(desc.structure)
        return newer.create("CompileGraph", dml.IDML_COMPILED_OPERATOR, graph, flags)


class _NativeGraph:
    """A `DML_GRAPH_DESC` and all that it points to; valid while it lives and `owner` is open."""

    def __init__(self, device: ComObject, plan: GraphPlan, owner: ExitStack) -> None:
        self._kept: list[Any] = []
        nodes = [self._node(device, node, owner) for node in plan.nodes]
        inputs, outputs, intermediates = (
            self._edges(*each)
            for each in (
                (DML_GRAPH_EDGE_TYPE.INPUT, DML_INPUT_GRAPH_EDGE_DESC, plan.input_edges),
                (DML_GRAPH_EDGE_TYPE.OUTPUT, DML_OUTPUT_GRAPH_EDGE_DESC, plan.output_edges),
                (
                    DML_GRAPH_EDGE_TYPE.INTERMEDIATE,
                    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
                    plan.intermediate_edges,
                ),
            )
        )
        self.structure = DML_GRAPH_DESC(
            len(plan.inputs),
            len(plan.outputs),
            len(nodes),
            self._array(DML_GRAPH_NODE_DESC, nodes),
            len(plan.input_edges),
            inputs,
            len(plan.output_edges),
            outputs,
            len(plan.intermediate_edges),
            intermediates,
        )

    def _keep(self, value: Any) -> int:
        self._kept.append(value)
        return ctypes.addressof(value)

    def _array(self, kind: Any, items: list[Any]) -> int | None:
        return self._keep((kind * len(items))(*items)) if items else None

    def _node(self, device: ComObject, node: GraphNode, owner: ExitStack) -> DML_GRAPH_NODE_DESC:
        name = node.name.encode() or None
        if isinstance(node, Constant):
            content = np.zeros(node.tensor.TotalTensorSizeInBytes, np.uint8)
            encode(node.data, node.tensor, content)
            data = (ctypes.c_uint8 * len(content)).from_buffer_copy(content.data)
            constant = DML_CONSTANT_DATA_GRAPH_NODE_DESC(self._keep(data), len(content), name)
            return DML_GRAPH_NODE_DESC(DML_GRAPH_NODE_TYPE.CONSTANT, self._keep(constant))
        operator = owner.enter_context(create_operator(device, node))
        native = DML_OPERATOR_GRAPH_NODE_DESC(operator.address, name)
        return DML_GRAPH_NODE_DESC(DML_GRAPH_NODE_TYPE.OPERATOR, self._keep(native))

    def _edges(
        self, kind: DML_GRAPH_EDGE_TYPE, desc: Any, edges: Iterable[tuple[int, ...]]
    ) -> int | None:
        descs = [DML_GRAPH_EDGE_DESC(kind, self._keep(desc(*edge, None))) for edge in edges]
        return self._array(DML_GRAPH_EDGE_DESC, descs)
