"""The text of a new case for an operator, valid as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator

__all__ = ["pattern_of", "scaffold"]

_LEAST_ELEMENTS: Final = 4
_MOST_ELEMENTS: Final = 64


def pattern_of(cases: Iterable[Case]) -> Case | None:
    """Return the case that a new one is best made after: small, but not trivial.

    Args:
        cases: cases of one operator; those that expect a rejection are passed over.
    """
    valid = [case for case in cases if not isinstance(case.expectation, ExpectedRejection)]
    return min(valid, key=_unsuitable, default=None)


def _unsuitable(case: Case) -> tuple[bool, bool, bool, int]:
    elements = sum(array.size for array in case.inputs().values())
    fits = _LEAST_ELEMENTS <= elements <= _MOST_ELEMENTS
    strided = any(tensor.Strides for _, _, tensor in _tensors(case))
    return not fits, strided, "documented" not in case.tags, elements


def _tensors(case: Case) -> Iterator[tuple[str, Field, TensorDesc]]:
    return tensors_of(case.operator, case.desc, FieldKind.INPUT, FieldKind.OUTPUT)


def scaffold(name: str, pattern: Case) -> str:
    """Return the text of a case file with one case.

    Args:
        name: the new case's.
        pattern: gives the desc and the inputs.
    """
    operator = pattern.operator
    lines = [
        "# yaml-language-server: $schema=../../schemas/case.schema.json",
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
            lines += _field(field, pattern.desc[field.name], data)
    lines += [
        "    # Worked out by hand, or recorded; without it a recording of a real DirectML, or else",
        "    # the reference, tells what is right.",
        "    # expect:",
        *(f"    #   {field.name}: [...]" for field in operator.of_kind(FieldKind.OUTPUT)),
        *_constraints(operator),
    ]
    return "\n".join(lines) + "\n"


def _field(field: Field, value: Any, data: Mapping[str, Any]) -> Iterator[str]:
    comment = f"  # {_comment(field)}" if _comment(field) else ""
    if value is None:
        yield f"      # {field.name}: left out, since it is optional"
    elif not field.is_tensor:
        yield f"      {field.name}: {_flow(_plain(value))}{comment}"
    elif field.is_array:
        yield f"      {field.name}:"
        for index, tensor in enumerate(value):
            yield f"        - {_flow(_tensor(tensor, data.get(f'{field.name}[{index}]')))}"
    else:
        yield f"      {field.name}: {_flow(_tensor(value, data.get(field.name)))}"


def _comment(field: Field) -> str:
    if field.kind is FieldKind.ATTRIBUTE and field.attribute_kind is AttributeKind.ENUM:
        return " | ".join(enumeration(field.base_type).values)
    return field.c_type if field.kind is FieldKind.ATTRIBUTE else ""


def _tensor(tensor: TensorDesc, values: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"Sizes": list(tensor.Sizes), "DataType": str(tensor.DataType)}
    if tensor.Strides is not None:
        found["Strides"] = list(tensor.Strides)
    if tensor.Flags:
        found["Flags"] = list(tensor.Flags)
    if values is not None:
        found["values"] = values.ravel().tolist()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1_000_000)
    return text.removesuffix("...\n").strip()


def _constraints(operator: Operator) -> Iterator[str]:
    if operator.constraints:
        yield "    # The desc must meet:"
    for constraint in operator.constraints:
        yield f"    #   {constraint.name}: {' '.join(constraint.require.source.split())}"
