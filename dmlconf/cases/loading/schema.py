"""JSON Schemas of case files; the parts for each operator are made from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.documents.schema import Checker, bundled_schema
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "case_checker",
    "desc_checker",
    "desc_schema",
    "entry_checker",
    "expect_schema",
    "graph_entry_checker",
    "node_checker",
]

# In a matrix or a repeated node, text that begins with = is an expression.
_EXPRESSION: Final = {"type": "string", "pattern": "^="}

_DATA_TYPES: Final = [*DataType, *(f"DML_TENSOR_DATA_TYPE_{name}" for name in DataType)]

_Schema = Mapping[str, Any]

_UINT: Final = {"type": "integer", "minimum": 0, "maximum": 0xFFFF_FFFF}
_INT: Final = {"type": "integer", "minimum": -0x8000_0000, "maximum": 0x7FFF_FFFF}


@cache
def case_checker() -> Checker:
    """Return the checker of everything in a case file except descs and names of outputs."""
    return Checker(bundled_schema("case"))


@cache
def entry_checker() -> Checker:
    """Return the checker of one entry of a case file except its desc and names of outputs."""
    schema = bundled_schema("case")
    return Checker({"$ref": "#/$defs/case", "$defs": schema["$defs"]})


@cache
def graph_entry_checker() -> Checker:
    """Return the checker of everything in one graph of a case file except its nodes' descs."""
    schema = bundled_schema("case")
    return Checker({"$ref": "#/$defs/graphCase", "$defs": schema["$defs"]})


@cache
def node_checker(operator: str, *, matrix: bool) -> Checker:
    """Return the checker of the desc of a graph's node.

    Args:
        matrix: whether values may be expressions, as in a matrix or a repeated node.
    """
    from dmlconf.catalogue.loader import operator as load

    defs = bundled_schema("case")["$defs"]
    tensors = defs["nodeInput"], defs["nodeOutput"]
    schema = desc_schema(load(operator), matrix=matrix, tensors=tensors)
    return Checker({"properties": {"desc": schema}, "$defs": defs})


@cache
def desc_checker(operator: str, *, matrix: bool) -> Checker:
    """Return the checker of an operator's desc and of the names of the expected outputs.

    Args:
        matrix: whether values of the desc may be expressions, as in a matrix.
    """
    from dmlconf.catalogue.loader import operator as load

    entry = load(operator)
    return Checker(
        {
            "properties": {
                "desc": desc_schema(entry, matrix=matrix),
                "expect": expect_schema(entry),
            },
        }
    )


def desc_schema(
    operator: Operator, *, matrix: bool, tensors: tuple[_Schema, _Schema] | None = None
) -> _Schema:
    """Return the JSON Schema of the operator's desc as case files write it.

    No field is required.

    Args:
        matrix: whether values may be expressions, as in a matrix or a repeated node.
        tensors: the schemas of an input and an output; None for those of an operator's case.
    """
    defs = bundled_schema("case")["$defs"]
    input_tensor, output_tensor = tensors or (defs["inputTensor"], defs["outputTensor"])
    kinds = {FieldKind.INPUT: input_tensor, FieldKind.OUTPUT: output_tensor}
    properties = {f.name: _field_schema(f, kinds, matrix) for f in operator.fields}
    return {
        "title": f"the desc of {operator.name}",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def expect_schema(operator: Operator) -> Mapping[str, Any]:
    """Return the JSON Schema of the outputs that a case may expect; a rejection always fits it."""
    outputs: dict[str, Any] = {field.name: {} for field in operator.of_kind(FieldKind.OUTPUT)}
    return {
        "if": {"type": "object", "not": {"required": ["rejected"]}},
        "then": {
            "title": f"the outputs of {operator.name}",
            "properties": outputs,
            "additionalProperties": False,
            "minProperties": 1,
        },
    }


def _field_schema(
    field: Field, tensors: Mapping[FieldKind, _Schema], matrix: bool
) -> Mapping[str, Any]:
    if field.is_tensor:
        item = tensors[field.kind]
        item = {**item, "title": field.name}
        if not matrix and "properties" in item:
            item["properties"] = {**item["properties"], "DataType": {"enum": _DATA_TYPES}}
    else:
        item = _attribute_schema(field, matrix)
    schema = _array_schema(field, item, matrix) if field.is_array else item
    schema = _or_null(schema)
    return _or_expression(schema, matrix and not (field.is_tensor and not field.is_array))


def _array_schema(field: Field, item: Mapping[str, Any], matrix: bool) -> Mapping[str, Any]:
    items = {"type": "array", "items": _or_expression(item, matrix)}
    if not (matrix and field.is_tensor):
        return items
    repeated = {
        "title": field.name,
        "required": ["repeat", "of"],
        "properties": {"repeat": {"type": ["integer", "string"]}, "of": item},
        "additionalProperties": False,
    }
    return {"if": {"type": "object"}, "then": repeated, "else": items}


def _attribute_schema(field: Field, matrix: bool) -> Mapping[str, Any]:
    if field.attribute_kind is AttributeKind.ENUM:
        values = enumeration(field.base_type)
        names = [*values.values, *(values.prefix + name for name in values.values)]
        # A number may stand for a constant that the header lacks.
        return {"if": {"type": "string"}, "then": {"enum": names}, "else": _UINT}
    schema = _ATTRIBUTES[field.attribute_kind]
    parts = schema.get("properties", {})
    if not parts:
        return schema
    return {**schema, "properties": {n: _or_expression(p, matrix) for n, p in parts.items()}}


_FLOAT: Final = {"type": "number"}

_ATTRIBUTES: Final[Mapping[AttributeKind, Mapping[str, Any]]] = {
    AttributeKind.UINT: _UINT,
    AttributeKind.INT: _INT,
    AttributeKind.FLOAT: _FLOAT,
    AttributeKind.BOOL: {"type": "boolean"},
    AttributeKind.SCALAR_UNION: {"type": "number"},
    AttributeKind.SIZE_2D: {
        "type": "object",
        "required": ["Width", "Height"],
        "properties": {"Width": _UINT, "Height": _UINT},
        "additionalProperties": False,
    },
    AttributeKind.SCALE_BIAS: {
        "type": "object",
        "required": ["Scale", "Bias"],
        "properties": {"Scale": _FLOAT, "Bias": _FLOAT},
        "additionalProperties": False,
    },
    AttributeKind.OPERATOR: {"type": "object", "required": ["operator"]},
}


def _or_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = schema.get("type")
    return {**schema, "type": [kind, "null"]} if isinstance(kind, str) else schema


def _or_expression(schema: Mapping[str, Any], matrix: bool) -> Mapping[str, Any]:
    if not matrix:
        return schema
    return {"if": _EXPRESSION, "else": schema}
