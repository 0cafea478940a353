"""Write a case as a model of DxDispatch: JSON, with the inputs' bytes in files beside it.

Source: DxDispatch/doc/Guide.md and DxDispatch/models/_schema.json of microsoft/DirectML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmlconf.cases.model import Case
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.diagnosis.export.buffers import buffer_bytes
from dmlconf.tensors.scalar import scalar_bytes

__all__ = ["unsupported_part", "write_model"]


def unsupported_part(case: Case) -> str | None:
    """Return what of a case DxDispatch has no word for; None where it has all.

    Source: `dmlTensorDataType` of its schema has no types of 4 bits.
    """
    for name, _, tensor in tensors_of(case.operator, case.desc, FieldKind.INPUT, FieldKind.OUTPUT):
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
    """Write the model, and a file `TENSOR.dat` for each input.

    Args:
        path: the JSON file.
        case: the case, of one operator; its data are arrays.
        metacommands: whether the driver's own implementations of operators may be used.
        half: whether intermediate results may be FLOAT16.
        graph: whether the operator is compiled as a graph of one node.

    Raises:
        OSError: a file cannot be written.
    """
    inputs = case.inputs()
    kinds = FieldKind.INPUT, FieldKind.OUTPUT
    tensors = {name: tensor for name, _, tensor in tensors_of(case.operator, case.desc, *kinds)}
    resources: dict[str, Any] = {}
    for name, tensor in tensors.items():
        if name in inputs:
            file = path.with_name(f"{_plain(name)}.dat")
            file.write_bytes(buffer_bytes(tensor, inputs[name]))
            values: dict[str, Any] = {"sourcePath": file.name}
        else:
            elements = -(-tensor.TotalTensorSizeInBytes // 4) * 32 // tensor.DataType.bits
            values = {"valueCount": elements, "value": 0}
        if name not in case.in_place:
            data_type = str(tensor.DataType)
            resources[name] = {"initialValuesDataType": data_type, "initialValues": values}
    owned = [name for name in inputs if "OWNED_BY_DML" in tensors[name].Flags]
    dispatchable: dict[str, Any] = {
        "type": f"DML_OPERATOR_{case.operator_name}",
        "dmlCompileType": "DmlCompileGraph" if graph else "DmlCompileOp",
        "desc": _desc(case.operator, case.desc),
    }
    flags = ([] if metacommands else ["DISABLE_META_COMMANDS"]) + (
        ["ALLOW_HALF_PRECISION_COMPUTATION"] if half else []
    )
    if flags:
        dispatchable["executionFlags"] = [f"DML_EXECUTION_FLAG_{flag}" for flag in flags]
    if owned:
        dispatchable["bindings"] = _bindings(case, owned)
    bound = [name for name in tensors if name not in owned]
    model = {
        "resources": resources,
        "dispatchables": {"operator": dispatchable},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "operator",
                "bindings": _bindings(case, bound),
            },
            *(
                {"type": "print", "resource": case.in_place.get(name, name)}
                for name in case.outputs()
            ),
        ],
    }
    path.write_text(json.dumps(model, indent=2) + "\n", encoding="utf-8")


def _plain(name: str) -> str:
    return name.replace("[", "-").replace("]", "")


def _bindings(case: Case, names: list[str]) -> dict[str, Any]:
    """Return which resource is bound to each field; arrays of tensors have a list."""
    bindings: dict[str, Any] = {}
    for name in names:
        field, _, index = name.partition("[")
        resource = case.in_place.get(name, name)
        if index:
            bindings.setdefault(field, []).append(resource)
        else:
            bindings[field] = resource
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
    """Return a scalar union: a number, or by its member where JSON has no such number."""
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
