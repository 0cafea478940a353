"""What a device of one feature level refuses, for `faulty:level=LEVEL` and `faulty:first-level`.

This module reads the catalogue's files instead of using `dmlconf.catalogue.levels`, so that an
error in one of the two makes their answers differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Capabilities, Outcome, Rejection
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.documents.reader import read_document
from dmlconf.expressions import Expression, ExpressionError, namespace
from dmlconf.graphs.model import Constant
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import DataType

__all__ = ["capabilities_of", "refusal", "run_at"]

_Data = Mapping[str, Any]
_DATA_TYPES: Final = "DML_TENSOR_DATA_TYPE"
_COMPILE_GRAPH: Final = "2_1"
_CONSTANT_NODES: Final = "6_2"


def run_at(level: FeatureLevel, case: Case) -> Outcome:
    """Refuse a case with E_INVALIDARG if the level lacks a part of it; else use the reference."""
    if refusal(level, case) is None:
        return run_case(case)
    return Rejection("CreateOperator", "E_INVALIDARG")


def capabilities_of(level: FeatureLevel) -> Capabilities:
    """Return the level and every data type that tensors may have at that level."""
    later = _enum(_DATA_TYPES).get("since", {})
    return Capabilities(
        level, frozenset(t for t in DataType if t not in later or _has(level, later[t]))
    )


def refusal(level: FeatureLevel, case: Case) -> str | None:
    """Return a part of the case that a device of the level lacks; None if it has all parts."""
    return next(_lacking_in_case(level, case), None)


def _lacking_in_case(level: FeatureLevel, case: Case) -> Iterator[str]:
    if case.is_compiled_as_graph and not _has(level, _COMPILE_GRAPH):
        yield "IDMLDevice1::CompileGraph"
    for node in case.graph.nodes:
        if isinstance(node, Constant):
            if not _has(level, _CONSTANT_NODES):
                yield f"the constant node {node.name}"
        else:
            for part in _lacking(level, _file(node.operator_name), node.desc, nested=False):
                yield f"{part} of the node {node.name}" if node.name else part


def _lacking(level: FeatureLevel, file: _Data, desc: _Data, *, nested: bool) -> Iterator[str]:
    if not _has(level, file["since"]):
        yield f"operator {file['operator']}"
        return
    fields = {field["name"]: field for field in file["fields"]}
    for name, field in fields.items():
        if field["kind"] == "attribute":
            yield from _lacking_of_attribute(level, field, desc.get(name))
    values = _values(file, {name: desc.get(name) for name in fields})
    for note in file.get("level_requirements", ()):
        if not _has(level, note["since"]) and Expression(note["when"]).holds(values):
            yield str(note["part"])
    if not nested:
        yield from _lacking_of_tensors(level, file, desc, values)


def _lacking_of_attribute(level: FeatureLevel, field: _Data, value: Any) -> Iterator[str]:
    kind = field["c_type"].removeprefix("const ").rstrip("*")
    if kind == "DML_OPERATOR_DESC":
        for activation in _several(value):
            yield from _lacking(level, _file(activation["operator"]), activation, nested=True)
    elif isinstance(value, str):
        since = _enum(kind).get("since", {}).get(value)
        if since is not None and not _has(level, since):
            yield f"{kind}_{value}"


def _lacking_of_tensors(
    level: FeatureLevel, file: _Data, desc: _Data, values: dict[str, Any]
) -> Iterator[str]:
    """Yield the tensors that no support table for the level lists, and a missing table.

    An operator may have several support tables, the newest level first, some with a condition
    `when`. Of those with the same condition, only the first that the device's level reaches counts,
    and only if the condition holds. A tensor must be in a table that counts.
    """
    groups: dict[str, _Data] = {}
    for table in file["support"]:
        when = table.get("when", "True")
        if Expression(when).holds(values) and (_has(level, table["since"])):
            groups.setdefault(when, table)
    if not groups:
        yield "a table of support"
    tables = [table["tensors"] for table in groups.values()]
    for field in file["fields"]:
        for tensor in _several(desc.get(field["name"])):
            if isinstance(tensor, TensorDesc) and not any(
                _lists(rows.get(field["name"]), tensor, rows) for rows in tables
            ):
                yield f"{field['name']} of {tensor.DataType} and {tensor.DimensionCount} dimensions"


def _lists(row: _Data | None, tensor: TensorDesc, rows: _Data) -> bool:
    """Return whether a row lists a tensor; a row may be `like` another of the `rows`."""
    if row is None:
        return False
    row = rows[row["like"]] if "like" in row else row
    ranks = range(row["ranks"][0], row["ranks"][1] + 1)
    return tensor.DataType in row["data_types"] and len(tensor.Sizes) in ranks


def _several(value: Any) -> tuple[Any, ...]:
    return () if value is None else value if isinstance(value, tuple) else (value,)


def _has(level: FeatureLevel, since: str) -> bool:
    major, minor = since.split("_")
    return (int(major), int(minor)) <= tuple(level)


def _values(file: _Data, desc: _Data) -> dict[str, Any]:
    values = namespace(desc)
    for name, term in file.get("terms", {}).items():
        try:
            values[name] = Expression(term).evaluate(values)
        except ExpressionError:
            continue
    return values


@cache
def _file(operator: str) -> _Data:
    data: _Data = read_document(schemas_directory() / "operators" / f"{operator.lower()}.yaml").data
    return data


@cache
def _enum(name: str) -> _Data:
    enums: _Data = read_document(schemas_directory() / "common.yaml").data["enums"]
    enum: _Data = enums[name]
    return enum
