"""Check the entry of a special case against the operator that it specialises."""

from __future__ import annotations

from collections.abc import Iterator

from dmlconf.catalogue import loader
from dmlconf.catalogue.model import Field, FieldKind, Operator, Specialisation

__all__ = ["special_case_problems"]


def special_case_problems(operator: Operator) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the problems of `specialises` and `family`, each as its location and a message."""
    of = operator.specialises
    if of is None:
        if operator.family is None:
            yield (), "needs a `family`, or `specialises` if it is a special case"
        return
    if operator.family is not None:
        yield ("family",), f"belongs to {of.operator}, of which {operator.name} is a special case"
    if operator.name in _generalisations(of):
        yield ("specialises", "operator"), f"{operator.name} is a special case of itself"
        return
    try:
        general = loader.operator(of.operator)
    except loader.UnknownOperatorError as error:
        yield ("specialises", "operator"), str(error)
        return
    yield from _field_problems(operator, of, general)


def _generalisations(of: Specialisation | None) -> list[str]:
    """Return the operators that a special case specialises, directly and through others."""
    names: list[str] = []
    while of is not None and of.operator not in names:
        names.append(of.operator)
        try:
            of = loader.operator(of.operator).specialises
        except loader.UnknownOperatorError:
            break
    return names


def _field_problems(
    operator: Operator, of: Specialisation, general: Operator
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    own, others = _without_counts(operator), _without_counts(general)
    for key, values in (("with", of.constants), ("computed", of.computed)):
        for name in values:
            where = ("specialises", key, name)
            if name not in others:
                yield where, f"{general.name} has no field {name} that needs a value"
            elif name in own:
                yield where, f"{operator.name} itself has a field {name}"
            elif others[name].is_tensor and not (key == "with" and of.constants[name] is None):
                yield where, f"{name} is a tensor, which can only be absent: null"
            elif key == "with" and of.constants[name] is None and not others[name].optional:
                yield where, f"{name} of {general.name} is not optional"
    for name in others:
        if name in of.computed and name in of.constants:
            yield ("specialises", "with", name), f"{name} is also computed"
        if not any(name in sources for sources in (own, of.constants, of.computed)):
            yield ("specialises",), f"{name} of {general.name} needs a value"
    read = {name for part in of.computed.values() for name in part.names}
    for name, field in own.items():
        if name in others and field.kind is not others[name].kind:
            yield ("specialises",), f"{name} is an {others[name].kind} of {general.name}"
    unused = [name for name in own if name not in others and name not in read]
    if unused:
        yield ("specialises",), f"{general.name} ignores {', '.join(unused)}"
    outputs = [field.name for field in operator.of_kind(FieldKind.OUTPUT)]
    theirs = [f.name for f in general.of_kind(FieldKind.OUTPUT) if f.name not in of.constants]
    if outputs != theirs:
        yield ("specialises",), f"{general.name} has different outputs: {', '.join(theirs)}"


def _without_counts(operator: Operator) -> dict[str, Field]:
    return {f.name: f for f in operator.fields if f.name not in operator.count_fields}
