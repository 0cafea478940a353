"""Write a case as a DxDispatch model: JSON, with data in files next to it.

Source: DxDispatch/doc/Guide.md and DxDispatch/models/_schema.json of microsoft/DirectML.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmlconf.cases.model import Case
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.diagnosis.export.buffers import buffer_bytes
from dmlconf.documents.whole_files import write_whole
from dmlconf.graphs.model import Graph, Node
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.scalar import scalar_bytes

__all__ = ["unsupported_part", "write_model"]


def unsupported_part(case: Case) -> str | None:
    """Return what DxDispatch cannot express, such as `INT4 of ATensor`, if anything.

    Source: `dmlTensorDataType` of DxDispatch's schema has no types of 4 bits.
    """
    for node in _nodes(case):
        for name, tensor in (*node.inputs.items(), *node.outputs.items()):
            if tensor.DataType.bits < 8:
                return f"{tensor.DataType} of {name}"
    return None


def write_model(
    path: Path,
    case: Case,
    *,
    metacommands: bool = True,
    half: bool = False,
    graph: bool = False,
) -> None:
    """Write the model, and a file `NAME.dat` for each input that is read and each constant.

    The operators of a graph are dispatched one after another: DxDispatch reads graphs only from
    binary files that ONNX Runtime wrote (the guide's "DML Serialized Graph Dispatchable"). A graph
    of one operator is compiled as a graph.

    Args:
        case: the case, whose data are arrays.
        metacommands: whether the driver's own implementations of operators may be used.
        half: whether intermediate results may be FLOAT16.
        graph: whether each operator is compiled as a graph of one node.

    Raises:
        OSError: a file cannot be written.
    """
    graph = graph or (bool(case.nodes) and len(case.graph.operator_nodes) == 1)
    resources = {name: _resource(path, name, *each) for name, each in _buffers(case).items()}
    flags = ([] if metacommands else ["DISABLE_META_COMMANDS"]) + (
        ["ALLOW_HALF_PRECISION_COMPUTATION"] if half else []
    )
    dispatchables: dict[str, Any] = {}
    commands: list[dict[str, Any]] = []
    for node in _nodes(case):
        bound = _bound(case, node)
        owned = {name for name, tensor in node.inputs.items() if tensor.Owned}
        entry: dict[str, Any] = {
            "type": f"DML_OPERATOR_{node.operator_name}",
            "dmlCompileType": "DmlCompileGraph" if graph else "DmlCompileOp",
            "desc": _desc(node.operator, node.desc),
        }
        if flags:
            entry["executionFlags"] = [f"DML_EXECUTION_FLAG_{flag}" for flag in flags]
        if owned:
            entry["bindings"] = _bindings({n: r for n, r in bound.items() if n in owned})
        name = node.name or "operator"
        dispatchables[name] = entry
        bindings = _bindings({n: r for n, r in bound.items() if n not in owned})
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": bindings})
    model = {
        "resources": resources,
        "dispatchables": dispatchables,
        "commands": [
            *commands,
            *({"type": "print", "resource": name} for name in _printed(case)),
        ],
    }
    write_whole(path, json.dumps(model, indent=2) + "\n")


def _nodes(case: Case) -> list[Node]:
    return [node for node in case.graph.in_order() if isinstance(node, Node)]


def _buffers(case: Case) -> dict[str, tuple[TensorDesc, Array | None]]:
    """Return each buffer by its resource's name; outputs have no data."""
    inputs = case.inputs()
    buffers: dict[str, tuple[TensorDesc, Array | None]] = {}
    graph = case.graph
    used = {edge.graph_input for edge in graph.input_edges}
    buffers |= {name: (graph.inputs[name], inputs[name]) for name in graph.inputs if name in used}
    buffers |= {part.name: (part.tensor, part.data) for part in graph.constants}
    for node in graph.operator_nodes:
        for name, tensor in node.outputs.items():
            resource = _output_name(graph, node.name, name)
            if resource not in case.in_place:
                buffers[resource] = tensor, None
    return buffers


def _output_name(graph: Graph, node: str, tensor: str) -> str:
    """Return the resource of a node's output: the name of a graph output, or `NODE.TENSOR`."""
    outputs = (name for name, slot in graph.output_sources().items() if slot == (node, tensor))
    return next(outputs, f"{node}.{tensor}")


def _bound(case: Case, node: Node) -> dict[str, str]:
    graph, sources = case.graph, case.graph.sources()
    constants = {part.name for part in graph.constants}
    bound: dict[str, str] = {}
    for name in node.inputs:
        source = sources[node.name, name]
        if isinstance(source, str):
            bound[name] = source
        elif source[0] in constants:
            bound[name] = source[0]
        else:
            bound[name] = _output_name(graph, *source)
    for name in node.outputs:
        resource = _output_name(graph, node.name, name)
        bound[name] = case.in_place.get(resource, resource)
    return bound


def _printed(case: Case) -> list[str]:
    written = (_output_name(case.graph, *slot) for slot in case.graph.output_sources().values())
    return list(dict.fromkeys(case.in_place.get(name, name) for name in written))


def _resource(path: Path, name: str, tensor: TensorDesc, data: Array | None) -> dict[str, Any]:
    if data is None:
        elements = -(-tensor.TotalTensorSizeInBytes // 4) * 32 // tensor.DataType.bits
        values: dict[str, Any] = {"valueCount": elements, "value": 0}
    else:
        file = path.with_name(_file_name(name))
        write_whole(file, buffer_bytes(tensor, data))
        values = {"sourcePath": file.name}
    return {"initialValuesDataType": str(tensor.DataType), "initialValues": values}


def _file_name(tensor: str) -> str:
    # `InputTensors[1]` becomes `InputTensors-1`. Names in a graph, such as `a` and `a-`, stay.
    return re.sub(r"[^\w.-]+", "-", tensor.removesuffix("]")) + ".dat"


def _bindings(bound: Mapping[str, str]) -> dict[str, Any]:
    bindings: dict[str, Any] = {}
    for name, resource in bound.items():
        tensor = TensorRef.of(name)
        if tensor.index is None:
            bindings[tensor.field] = resource
        else:
            bindings.setdefault(tensor.field, []).append(resource)
    return bindings


def _desc(operator: Operator, desc: Desc) -> dict[str, Any]:
    fields = ((field, desc.get(field.name)) for field in operator.fields)
    return {
        field.name: _scalar(value, str(desc.get(field.type_field or "")))
        if field.attribute_kind is AttributeKind.SCALAR_UNION
        else _value(field, value)
        for field, value in fields
        if value is not None
    }


def _scalar(value: float, data_type: str) -> Any:
    """Return a scalar union: a number, or one named member if JSON cannot express the number."""
    if isinstance(value, int) or math.isfinite(value):
        return value
    if data_type == "FLOAT16":
        return {"UInt16": int.from_bytes(scalar_bytes(value, data_type)[:2], "little")}
    return {data_type.capitalize(): _value_of_float(value)}


def _value_of_float(value: float) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _value(field: Field, value: Any) -> Any:
    if isinstance(value, TensorDesc):
        return _tensor(value)
    if isinstance(value, tuple):
        return [_value(field, item) for item in value]
    if isinstance(value, Mapping) and "operator" in value:
        nested = catalogue.operator(value["operator"])
        return {"Type": f"DML_OPERATOR_{nested.name}", "Desc": _desc(nested, value)}
    if isinstance(value, Mapping):
        return {name: _value(field, item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return _value_of_float(value)
    if isinstance(value, str) and field.attribute_kind is AttributeKind.ENUM:
        return f"{catalogue.enumeration(field.base_type).prefix}{value}"
    return value


def _tensor(tensor: TensorDesc) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "DataType": str(tensor.DataType),
        "Sizes": list(tensor.Sizes),
        "TotalTensorSizeInBytes": tensor.TotalTensorSizeInBytes,
    }
    if tensor.Strides is not None:
        entry["Strides"] = list(tensor.Strides)
    if tensor.Flags:
        entry["Flags"] = [f"DML_TENSOR_FLAG_{flag}" for flag in tensor.Flags]
    if tensor.GuaranteedBaseOffsetAlignment:
        entry["GuaranteedBaseOffsetAlignment"] = tensor.GuaranteedBaseOffsetAlignment
    return entry
