"""What the catalogue says about a desc of which only a few parts are known.

Where CAST's InputTensor is FLOAT32 and nothing else is known, a condition is false, true, or open.
Only what is false whatever the other parts are excludes a combination.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations, product
from typing import Any, Final

from dmlconf.catalogue.loader import enumeration, operator_sets
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator, SupportTable
from dmlconf.catalogue.support import data_types_of, ranks_of
from dmlconf.expressions import Expression, ExpressionError, Namespace, namespace

__all__ = ["Assignment", "broken_by", "tied"]

_MOST_OPTIONAL: Final = 3
"""Unknown optional fields that are tried both present and absent."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is known of a field.

    Attributes:
        field: its name.
        part: `DataType` or `DimensionCount` of a tensor, `operator` of a nested one; None for the
            field itself.
        value: its value; `...` if it is only known to be present.
    """

    field: str
    part: str | None
    value: Any


class _Unknown:
    """A value that is present, and of which nothing is known: everything asked of it fails."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise ExpressionError("unknown")

    def __bool__(self) -> bool:
        raise ExpressionError("unknown")


class _Tensor(_Unknown):
    """A tensor with only some of its properties."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


@lru_cache(maxsize=65_536)
def broken_by(operator: Operator, assigned: tuple[Assignment, ...]) -> str | None:
    """Return what in the catalogue makes some parts of a desc impossible; None if nothing does."""
    if not assigned:
        return None
    known = _known(operator, assigned)
    if known is None:
        return "one part needs a field that the other one leaves out"
    why = _impossible(operator, known)
    if why is not None:
        return why
    decisive = {n for table in operator.support if table.when for n in table.when.names}
    for field in operator.of_kind(FieldKind.ATTRIBUTE):
        if field.name in decisive - known.keys() and not field.is_array:
            values = _values(field)
            reasons = [_impossible(operator, {**known, field.name: each}) for each in values]
            if reasons and None not in reasons:
                return f"with every {field.name}: {reasons[0]}"
    return None


def _values(field: Field) -> tuple[Any, ...]:
    """Return the values of a flag or an enumeration."""
    match field.attribute_kind:
        case AttributeKind.BOOL:
            return (False, True)
        case AttributeKind.ENUM if field.base_type != "DML_TENSOR_DATA_TYPE":
            return tuple(enumeration(field.base_type).values)
    return ()


def _impossible(operator: Operator, known: Mapping[str, Any]) -> str | None:
    tables = [table for table in operator.support if _fits(operator, table, known)]
    if operator.support and not tables:
        return "no table of tensor support lists them together"
    for constraint in operator.constraints:
        if constraint.enforced and _is_false(operator, constraint.require, known):
            return f"constraint {constraint.name}"
    return None


def _known(operator: Operator, assigned: Iterable[Assignment]) -> Mapping[str, Any] | None:
    parts: dict[str, dict[str, Any]] = {}
    known: dict[str, Any] = {}
    for each in assigned:
        if each.part == "operator":
            known[each.field] = {"operator": each.value}
        elif each.part is not None:
            parts.setdefault(each.field, {})[each.part] = each.value
        elif each.value is not ...:
            known[each.field] = each.value
        else:
            known.setdefault(each.field, _Tensor())
    for name, tensor in parts.items():
        if name in known and known[name] is None:
            if not operator.field(name).optional:
                return None
            continue  # Of a group of tensors that share a data type, this one is absent.
        value = _Tensor(**tensor)
        field = operator.field(name)
        if field.optional and name not in known:
            continue
        known[name] = (value,) if field.is_array else value
    return known


def _fits(operator: Operator, table: SupportTable, known: Mapping[str, Any]) -> bool:
    for name, value in known.items():
        row = table.tensors.get(name)
        tensor = value[0] if isinstance(value, tuple) else value
        if row is None or not isinstance(tensor, _Tensor):
            continue
        parts = vars(tensor)
        data_type, rank = parts.get("DataType"), parts.get("DimensionCount")
        if data_type is not None and data_type not in row.data_types:
            return False
        if rank is not None and not row.ranks[0] <= rank <= row.ranks[1]:
            return False
    return table.when is None or not _is_false(operator, table.when, known)


def _is_false(operator: Operator, condition: Expression, known: Mapping[str, Any]) -> bool:
    """Return whether a condition is false whatever is unknown."""
    if condition.names.isdisjoint(known):
        return False
    fields = {field.name: field for field in operator.fields}
    unknown = sorted(condition.names & fields.keys() - known.keys())
    optional = [name for name in unknown if fields[name].optional]
    if len(optional) > _MOST_OPTIONAL:
        return False
    names = {**operator_sets(), **known, **{name: _Tensor() for name in unknown}}
    for absent in product((False, True), repeat=len(optional)):
        chosen = {name: None for name, gone in zip(optional, absent, strict=True) if gone}
        try:
            if not condition.names <= names.keys():  # It needs a term.
                return False
            if condition.evaluate(namespace({**names, **chosen})):
                return False
        except ExpressionError:
            return False
    return True


@cache
def tied(operator: Operator, part: str) -> Mapping[str, tuple[str, ...]]:
    """Return the tensors whose data types, or numbers of dimensions, are always the same.

    Each group is listed under its first tensor: of CAST, each of the two is a group of its own.

    Args:
        operator: the operator.
        part: `DataType` or `DimensionCount`.
    """
    listed = data_types_of if part == "DataType" else ranks_of
    groups: dict[str, list[str]] = {}
    for field in operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT):
        for first, group in groups.items():
            values = set(listed(operator, first))
            if values == set(listed(operator, field.name)) and _always_same(
                operator, part, first, field.name, values
            ):
                group.append(field.name)
                break
        else:
            groups[field.name] = [field.name]
    return {first: tuple(group) for first, group in groups.items()}


def _always_same(
    operator: Operator, part: str, first: str, second: str, values: Iterable[Any]
) -> bool:
    """Return whether two tensors that differ break a constraint, whatever the others are."""
    return all(
        _refused(operator, part, {first: one, second: other}, others)
        for one, other in permutations(values, 2)
        for others in (one, other)
    )


def _refused(operator: Operator, part: str, different: Mapping[str, Any], others: Any) -> bool:
    for only_these in (False, True):
        names: dict[str, Any] = dict(operator_sets())
        for field in operator.fields:
            if field.is_tensor and field.optional and only_these and field.name not in different:
                names[field.name] = None
            elif field.is_tensor:
                tensor = _Tensor(**{part: different.get(field.name, others)})
                names[field.name] = (tensor,) if field.is_array else tensor
            else:
                names[field.name] = _Tensor()
        for name, term in operator.terms.items():
            if term.names <= names.keys():
                with suppress(ExpressionError):
                    names[name] = term.evaluate(namespace(names))
        if not any(_fails(each, namespace(names)) for each in _about(operator, part)):
            return False
    return True


@cache
def _about(operator: Operator, part: str) -> tuple[Expression, ...]:
    """Return the enforced conditions that read a part of tensors."""
    return tuple(
        each.require
        for each in operator.constraints
        if each.enforced
        and any(
            part in expression.source
            for expression in (each.require, *operator.terms_in(each.require).values())
        )
    )


def _fails(condition: Expression, names: Namespace) -> bool:
    if not condition.names <= names.keys():
        return False
    try:
        return not condition.evaluate(names)
    except ExpressionError:
        return False
