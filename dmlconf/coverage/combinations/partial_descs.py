"""Decide whether a partly known desc can be valid.

For example, no desc of GEMM is valid in which ATensor is FLOAT32 and BTensor is FLOAT16. Their data
types must be the same, whatever the other fields are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, permutations, product
from typing import Any, Final

from dmlconf.catalogue.loader import enumeration, operator_sets
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator, SupportTable
from dmlconf.catalogue.support import data_types_of, ranks_of
from dmlconf.coverage.combinations.open_numbers import (
    FUNCTIONS_OF_OPEN_NUMBERS,
    Answers,
    OneOf,
    OpenNumber,
    OpenSizes,
    possible,
)
from dmlconf.coverage.combinations.spaces import spaces_of
from dmlconf.expressions import Expression, ExpressionError, Namespace, namespace

__all__ = ["CLASS", "LAYOUT", "Assignment", "broken_by", "tied"]

LAYOUT: Final = "layout"
CLASS: Final = "class"

_ANSWERS: Final = Answers()
"""Answers to comparisons with unknown values; `possible` sets them for each evaluation."""

_IMPLIED: Final = {"broadcast": {"Broadcast": True, "OverlappingStrides": True}}
"""Properties that a layout implies besides `Packed=False`."""

_NO_TABLE: Final = "no table of tensor support lists them together"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A known part of a field.

    Attributes:
        part: `DataType`, `DimensionCount` or `layout` of a tensor, `operator` for the name of a
            nested operator, or `class` where `field` is a family's parameter; None for the field
            itself.
        value: the value of the part; `...` if it is only known to be present.
    """

    field: str
    part: str | None
    value: Any


class _Unknown:
    """A present but unknown value: comparing or testing it raises ExpressionError."""

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
    """Return why no valid desc has these parts; None if one may have them."""
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
            why = _impossible_with_each_value(operator, known, field)
            if why is not None:
                return f"with every {field.name}: {why}"
    return _unfit_sizes(operator, assigned, known)


def _impossible_with_each_value(
    operator: Operator, known: Mapping[str, Any], field: Field
) -> str | None:
    """Return why a desc is impossible whatever a field's value is: the reason for the first value.

    None if one value makes the desc possible, or if `_values` lists no value for the field.
    """
    reasons = []
    for value in _values(field):
        why = _impossible(operator, {**known, field.name: value})
        if why is None:
            return None
        reasons.append(why)
    return reasons[0] if reasons else None


def _values(field: Field) -> tuple[Any, ...]:
    match field.attribute_kind:
        case AttributeKind.BOOL:
            return (False, True)
        case AttributeKind.ENUM if field.base_type != "DML_TENSOR_DATA_TYPE":
            return tuple(enumeration(field.base_type).values)
    return ()


def _unfit_sizes(
    operator: Operator, assigned: tuple[Assignment, ...], known: Mapping[str, Any]
) -> str | None:
    """Return why no sizes fit the known layouts and classes of sizes; None if some sizes do.

    If no layout except `packed` is known, the result is None, too.
    """
    layouts = {each.field: each.value for each in assigned if each.part == LAYOUT}
    tensors = [name for name, layout in layouts.items() if layout != "packed"]
    if not tensors:
        return None
    choices = []
    for name in tensors:
        forms, why = _forms(operator, name, layouts[name])
        if not forms:
            return why
        parts = vars(known[name])
        rank = parts.get("DimensionCount")
        forms = tuple(form for form in forms if rank in (None, vars(form)["DimensionCount"]))
        choices.append([_Tensor(**vars(form) | parts) for form in forms])
    classes = [each for each in assigned if each.part == CLASS]
    reason: str | None = _NO_TABLE
    for at, chosen in enumerate(product(*choices)):
        described = {**known, **dict(zip(tensors, chosen, strict=True))}
        broken = _impossible(operator, described, classes, at_least=2)
        if broken is None:
            return None
        reason = broken if at == 0 else reason
    return reason


@cache
def _forms(operator: Operator, name: str, layout: str) -> tuple[tuple[_Tensor, ...], str]:
    """Return tensors of all ranks with a layout, and the reason if there are none."""
    forms, reason = [], ""
    for rank in sorted(ranks_of(operator, name), reverse=True):
        always_one = {at: _always_one(operator, name, rank, at) for at in range(rank)}
        reason = reason or next(filter(None, always_one.values()), "")
        for large in _large(layout, rank):
            if any(always_one[at] for at in large):
                continue
            form = _form(rank, large, Packed=False, **_IMPLIED.get(layout, {}))
            why = _impossible(operator, {name: form})
            if why is None:
                forms.append(form)
            reason = reason or why or ""
    return tuple(forms), reason


@cache
def _always_one(operator: Operator, name: str, rank: int, at: int) -> str | None:
    """Return why the size of a dimension is always 1; None if it may be larger."""
    return _impossible(operator, {name: _form(rank, (at,))})


def _form(rank: int, large: tuple[int, ...], **properties: bool) -> _Tensor:
    return _Tensor(
        DimensionCount=rank,
        Sizes=tuple(OpenNumber(_ANSWERS, 2 if at in large else 1) for at in range(rank)),
        ElementCount=OpenNumber(_ANSWERS, 2 ** len(large)),
        **properties,
    )


def _large(layout: str, rank: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of dimensions; a tensor has the layout only if all sizes of one set exceed 1."""
    if layout == "channels-last":
        yield from ((1, at) for at in range(rank - 1, 1, -1))
    else:
        yield from combinations(range(rank - 1, -1, -1), 2 if layout == "transposed" else 1)


def _impossible(
    operator: Operator,
    known: Mapping[str, Any],
    classes: Sequence[Assignment] = (),
    at_least: int = 1,
) -> str | None:
    """Return why parts of a desc are impossible together; None if no reason is known.

    Args:
        classes: classes of families' parameters.
        at_least: constraints that read fewer known fields than this are ignored.
    """
    tables = [table for table in operator.support if _fits(operator, table, known)]
    if operator.support and not tables:
        return _NO_TABLE
    for constraint in operator.constraints:
        read = len(_read_by(operator, constraint.require)[1] & known.keys())
        if (
            constraint.enforced
            and read >= at_least
            and _is_false(operator, constraint.require, known)
        ):
            return f"constraint {constraint.name}"
    for each in classes:
        if _not_of_class(operator, each, known):
            return f"{each.field} is never {each.value} then"
    return None


def _not_of_class(operator: Operator, assigned: Assignment, known: Mapping[str, Any]) -> bool:
    """Return whether a family's parameter cannot have a class, whatever the unknown fields are."""
    names: dict[str, Any] = {"Input": None}
    for name, kind in (("Input", FieldKind.INPUT), ("Output", FieldKind.OUTPUT)):
        first = next(operator.of_kind(kind), None)
        if first is not None:
            value = known.get(first.name)
            if (value is None and first.optional) or first.is_array:
                return False
            names[name] = _opened(operator, first.name, _Tensor() if value is None else value)
    parameters = [p for space in spaces_of(operator) for p in space.parameters]
    [parameter] = [each for each in parameters if each.name == assigned.field]
    used = parameter.value.names - names.keys() - known.keys()
    if any(operator.field(name).optional for name in used):
        return False
    names |= {name: _opened(operator, name, value) for name, value in known.items()}
    names |= {name: _open(operator, operator.field(name)) for name in used}
    names |= FUNCTIONS_OF_OPEN_NUMBERS
    return not possible(lambda: parameter.class_of(namespace(names)) == assigned.value, _ANSWERS)


def _opened(operator: Operator, name: str, value: Any) -> Any:
    """Return a value; a tensor's unknown data type and sizes become values of `open_numbers`."""
    if not isinstance(value, _Tensor):
        return value
    unknown = {
        "DataType": OneOf(_ANSWERS, data_types_of(operator, name)),
        "Sizes": OpenSizes(_ANSWERS),
        "ElementCount": OpenNumber(_ANSWERS, 1),
    }
    return _Tensor(**unknown | vars(value))


@cache
def _open(operator: Operator, field: Field) -> Any:
    """Return the value that stands for a present field of which nothing is known.

    For a tensor, its data type and sizes are open; for an attribute, it is an open number.
    """
    if field.is_array:
        return _Tensor()
    return _opened(operator, field.name, _Tensor()) if field.is_tensor else OpenNumber(_ANSWERS)


def _known(operator: Operator, assigned: Iterable[Assignment]) -> Mapping[str, Any] | None:
    """Return the known values by field; None if a required field is absent."""
    parts: dict[str, dict[str, Any]] = {}
    known: dict[str, Any] = {}
    for each in assigned:
        if each.part == "operator":
            known[each.field] = {"operator": each.value}
        elif each.part == LAYOUT:
            known.setdefault(each.field, _Tensor())
        elif each.part == CLASS:
            continue
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
            continue  # The tensor shares its data type with others, and is absent itself.
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
        if rank is not None and not row.has_rank(rank):
            return False
    return table.when is None or not _is_false(operator, table.when, known)


@cache
def _read_by(
    operator: Operator, condition: Expression
) -> tuple[Mapping[str, Expression], frozenset[str]]:
    """Return the terms of a condition, and the names in the condition and the terms."""
    terms = operator.terms_in(condition)
    return terms, condition.names.union(*(term.names for term in terms.values()))


def _is_false(operator: Operator, condition: Expression, known: Mapping[str, Any]) -> bool:
    """Return whether a condition is false whatever the unknown fields are."""
    used = _read_by(operator, condition)[1]
    if used.isdisjoint(known):
        return False
    parts = {name: value for name, value in known.items() if name in used}
    if all(isinstance(value, str | bool | None) for value in parts.values()):
        return _is_false_with(operator, condition, tuple(parts.items()))
    return _never_holds(operator, condition, parts)


@cache
def _is_false_with(
    operator: Operator, condition: Expression, parts: tuple[tuple[str, Any], ...]
) -> bool:
    return _never_holds(operator, condition, dict(parts))


_MOST_OPTIONAL: Final = 10
"""A condition counts as possible if it reads n known fields and more than `_MOST_OPTIONAL // n`
unknown optional ones. Otherwise, each of the optional ones is tried both present and absent."""


def _never_holds(operator: Operator, condition: Expression, known: Mapping[str, Any]) -> bool:
    terms, used = _read_by(operator, condition)
    fields = {field.name: field for field in operator.fields if field.name in used}
    unknown = sorted(fields.keys() - known.keys())
    optional = [name for name in unknown if fields[name].optional]
    if len(optional) > _MOST_OPTIONAL // len(known):
        return False
    shared = {**_shared_names()}
    shared |= {name: _opened(operator, name, value) for name, value in known.items()}
    shared |= {name: _open(operator, fields[name]) for name in unknown}
    choices = (chosen for n in range(len(optional) + 1) for chosen in combinations(optional, n))
    for absent in choices:
        names = shared | dict.fromkeys(absent)

        def holds(names: Mapping[str, Any] = names) -> Any:
            whole = {**names}
            for name, term in terms.items():
                with suppress(ExpressionError):
                    whole[name] = term.evaluate(whole)
            return condition.evaluate(whole)

        if possible(holds, _ANSWERS):
            return False
    return True


@cache
def _shared_names() -> Namespace:
    return namespace({**operator_sets(), **FUNCTIONS_OF_OPEN_NUMBERS})


@cache
def tied(operator: Operator, part: str) -> Mapping[str, tuple[str, ...]]:
    """Return the tensors whose data types, or numbers of dimensions, are always the same.

    The key of a group is its first tensor. Some groups have only one tensor.

    Args:
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
    """Return whether two tensors that differ in a part always break a constraint."""
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
