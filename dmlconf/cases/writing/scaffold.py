"""Generate the text of a new case file with one valid case, modelled on another case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import yaml

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.cases.writing.desc_entry import attribute_entry, tensor_entry
from dmlconf.cases.writing.graph_entry import graph_parts
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.catalogue.support import data_types_of
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["pattern_of", "scaffold"]

_LEAST_ELEMENTS: Final = 4
_MOST_ELEMENTS: Final = 64
_WIDTH: Final = 100


def pattern_of(cases: Iterable[Case]) -> Case | None:
    """Return the best case to model a new one on, small but not trivial; None if there is none.

    Args:
        cases: cases of one operator, or graphs. Cases that expect a rejection are skipped.
    """
    valid = [case for case in cases if not isinstance(case.expectation, ExpectedRejection)]
    return min(valid, key=_unsuitable, default=None)


def _unsuitable(case: Case) -> tuple[bool | int, ...]:
    if case.nodes:
        return _unsuitable_graph(case)
    inputs = tensors_of(case.entry, case.desc, FieldKind.INPUT)
    elements = sum(prod(tensor.Sizes) for _, _, tensor in inputs)
    fits = _LEAST_ELEMENTS <= elements <= _MOST_ELEMENTS
    strided = any(tensor.Strides for _, _, tensor in _tensors(case))
    undocumented = "documented" not in case.tags
    special = "boundary" in case.tags or "combinations" in case.tags
    ones = sum(tensor.Sizes.count(1) for _, _, tensor in _tensors(case))
    return not fits, strided, undocumented, special, ones, elements


def _unsuitable_graph(case: Case) -> tuple[bool | int, ...]:
    graph = case.graph
    tensors = (*graph.inputs.values(), *graph.outputs.values())
    plain = all(t.Strides is None and not t.Flags for t in tensors) and not graph.constants
    other_types = any(tensor.DataType is not DataType.FLOAT32 for tensor in tensors)
    elements = sum(prod(tensor.Sizes) for tensor in tensors)
    return case.relation is not None, not plain, other_types, len(graph.nodes) != 2, elements


def _tensors(case: Case) -> Iterator[tuple[str, Field, TensorDesc]]:
    return tensors_of(case.entry, case.desc)


def scaffold(name: str, pattern: Case, file: Path | None = None) -> str:
    """Return the text of a case file with one case.

    Args:
        name: the case's name in the file.
        pattern: a case whose desc or nodes, and inputs, are copied.
        file: where the text will be, for the relative path of the schema; None if unknown.
    """
    if pattern.nodes:
        return "\n".join([*_schema(file), *_graph(name, pattern)]) + "\n"
    operator = pattern.operator
    lines = [
        *_schema(file),
        f"operator: {operator.name}",
        f"page: {operator.page}",
        "cases:",
        f"  - name: {name}",
        "    note: What this case shows that no other does.",
        "    desc:",
    ]
    data = pattern.inputs()
    for field in operator.fields:
        if field.name not in operator.count_fields:
            lines += _field(operator, field, pattern.desc[field.name], data)
    lines += [
        "    # What is right, worked out by hand or recorded on a real DirectML. Without it, the",
        "    # case tests other backends against the reference, and does not test the reference.",
        "    # expect:",
        *(f"    #   {field.name}: [...]" for field in operator.of_kind(FieldKind.OUTPUT)),
        *_constraints(operator),
    ]
    return "\n".join(lines) + "\n"


def _graph(name: str, pattern: Case) -> Iterator[str]:
    yield "graph: What the graphs of this file have in common."
    yield "cases:"
    yield f"  - name: {name}"
    yield "    note: What this graph shows that no other does."
    arrays = {**pattern.inputs(), **{part.name: part.data for part in pattern.graph.constants}}
    values = {key: array.ravel().tolist() for key, array in arrays.items()}
    parts = graph_parts(pattern.graph, values, tensor_entry, attribute_entry)
    for key, entries in parts.items():
        yield f"    {key}:"
        for entry, value in entries.items():
            if key != "nodes":
                yield f"      {entry}: {_flow(value)}"
                continue
            yield f"      {entry}:"
            yield f"        operator: {value['operator']}"
            yield "        desc:"
            yield from (
                f"          {field}: {_flow(part)}" for field, part in value["desc"].items()
            )
    yield "    # What is right, worked out by hand. Without it, real DirectML and the reference are"
    yield "    # compared with each other."
    yield "    # expect:"
    yield from (f"    #   {output}: [...]" for output in pattern.graph.outputs)


def _schema(file: Path | None) -> Iterator[str]:
    """Yield the line by which editors find the schema, if a folder above the file has it."""
    for steps, folder in enumerate(file.absolute().parents if file else ()):
        if (folder / "schemas" / "case.schema.json").is_file():
            yield f"# yaml-language-server: $schema={'../' * steps}schemas/case.schema.json"
            return


def _field(operator: Operator, field: Field, value: Any, data: Mapping[str, Any]) -> Iterator[str]:
    if value is None:
        yield f"      # {field.name}: left out, since it is optional"
    elif not field.is_tensor:
        line, comment = (
            f"      {field.name}: {_flow(attribute_entry(value))}",
            _comment(operator, field),
        )
        if len(beside := f"{line}  # {comment}") <= _WIDTH:
            line = beside
        else:
            yield from _commented(comment, "      # ")
        yield line
    elif field.is_array:
        yield f"      {field.name}:"
        for index, tensor in enumerate(value):
            yield f"        - {_entry(tensor, data.get(f'{field.name}[{index}]'))}"
    else:
        yield f"      {field.name}: {_entry(value, data.get(field.name))}"


def _comment(operator: Operator, field: Field) -> str:
    if field.attribute_kind is not AttributeKind.ENUM:
        return field.c_type
    values = enumeration(field.base_type).values
    if field.base_type == "DML_TENSOR_DATA_TYPE":
        tensors = [entry.name for entry in operator.fields if entry.is_tensor]
        supported = {str(taken) for name in tensors for taken in data_types_of(operator, name)}
        return " | ".join(value for value in values if value in supported)
    return " | ".join(values)


def _commented(text: str, beginning: str, further: str = "") -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent=beginning,
        subsequent_indent=beginning + further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entry(tensor: TensorDesc, values: Array | None) -> str:
    data = None if values is None else {"values": values.ravel().tolist()}
    return _flow(tensor_entry(tensor, data))


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1_000_000)
    return text.removesuffix("...\n").strip()


def _constraints(operator: Operator) -> Iterator[str]:
    if operator.constraints:
        yield "    # The desc must meet:"
    for constraint in operator.constraints:
        yield from _commented(f"{constraint.name}: {constraint.require}", "    #   ", "    ")
    if operator.terms:
        yield "    # where"
    for name, term in operator.terms.items():
        yield from _commented(f"{name} = {term}", "    #   ", "    ")
