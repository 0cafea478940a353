"""Check that the parts of one operator's entry fit together.

`special_cases` compares a special case with its general operator; `lint` checks the syntax.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dmlconf.catalogue import loader
from dmlconf.catalogue.model import (
    FEATURE_LEVELS,
    AttributeKind,
    FeatureLevel,
    Field,
    FieldKind,
    Operator,
)
from dmlconf.catalogue.precision import PrecisionEntry
from dmlconf.catalogue.special_cases import special_case_problems
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import Document
from dmlconf.expressions import Expression, ExpressionError, suggestion

__all__ = [
    "OperatorProblem",
    "expression_problems",
    "operator_problems",
    "repeated",
    "unknown_level",
]

OperatorProblem = tuple[tuple[str | int, ...], str]
"""A location in a file, as keys and indices, and what is wrong there."""


def operator_problems(operator: Operator, document: Document) -> Iterator[OperatorProblem]:
    """Yield the contradictions within an operator's file."""
    if document.path.stem != operator.name.lower():
        yield ("operator",), f"{operator.name} belongs in {operator.name.lower()}.yaml"
    yield from _field_problems(operator)
    yield from special_case_problems(operator)
    yield from _computed_problems(operator)
    yield from _term_problems(operator)
    yield from _support_problems(operator)
    yield from _level_problems(operator)
    yield from _constraint_problems(operator)
    yield from _precision_problems(operator, document)
    for index, pair in enumerate(operator.in_place):
        for role, name, kind in (
            ("output", pair.output, FieldKind.OUTPUT),
            ("input", pair.input, FieldKind.INPUT),
        ):
            if name not in {field.name for field in operator.of_kind(kind)}:
                yield ("in_place", index, role), f"{name} is not an {role} tensor"


def _field_problems(operator: Operator) -> Iterator[OperatorProblem]:
    fields = {field.name: field for field in operator.fields}
    for name in repeated(field.name for field in operator.fields):
        yield ("fields",), f"{name} is listed twice"
    for index, field in enumerate(operator.fields):
        for problem in _type_problems(field, fields):
            yield ("fields", index), problem
        if field.bounds is not None:
            where = ("fields", index, "bounds")
            yield from _unknown_names(operator, field.bounds.high, (*where, "high"), operator.terms)
            writes = field.bounds.writes
            if writes is not None and (writes not in fields or not fields[writes].is_tensor):
                yield (*where, "writes"), f"{operator.name} has no tensor {writes}"


def _computed_problems(operator: Operator) -> Iterator[OperatorProblem]:
    if operator.specialises is not None:
        for name, expression in operator.specialises.computed.items():
            where = ("specialises", "computed", name)
            yield from _unknown_names(operator, expression, where, operator.terms)


def _type_problems(field: Field, fields: dict[str, Field]) -> Iterator[str]:
    if field.is_tensor != (field.base_type == "DML_TENSOR_DESC"):
        yield f"{field.name} is of kind {field.kind}, but its type is {field.c_type}"
    if field.is_array and not field.c_type.endswith("*"):
        yield f"{field.name} has a count, but its type is not a pointer"
    if field.count is not None and (
        field.count not in fields or fields[field.count].c_type != "UINT"
    ):
        yield f"{field.name} has the count {field.count}, which is not a UINT field"
    if field.is_tensor:
        return
    if field.attribute_kind is AttributeKind.ENUM:
        try:
            loader.enumeration(field.base_type)
        except KeyError:
            yield f"{field.base_type} is not an enum in common.yaml"
    union = field.attribute_kind is AttributeKind.SCALAR_UNION
    type_field = fields.get(field.type_field or "")
    if union and (type_field is None or type_field.base_type != "DML_TENSOR_DATA_TYPE"):
        yield f"{field.name} needs a type_field of type DML_TENSOR_DATA_TYPE"


def _term_problems(operator: Operator) -> Iterator[OperatorProblem]:
    used = {name for expression in _expressions(operator) for name in expression.names}
    known: list[str] = []
    for name, term in operator.terms.items():
        where = ("terms", name)
        if name in {field.name for field in operator.fields}:
            yield where, f"{name} is the name of a field"
        if name not in used:
            yield where, f"no expression uses {name}"
        yield from _unknown_names(operator, term, where, known)
        known.append(name)


def _expressions(operator: Operator) -> Iterator[Expression]:
    yield from operator.terms.values()
    if operator.specialises is not None:
        yield from operator.specialises.computed.values()
    yield from (field.bounds.high for field in operator.fields if field.bounds is not None)
    yield from (constraint.require for constraint in operator.constraints)
    yield from (table.when for table in operator.support if table.when is not None)
    yield from (requirement.when for requirement in operator.level_requirements)
    for entry in (entry for entries in operator.precision.values() for entry in entries):
        yield from _expressions_of(entry).values()


def _expressions_of(entry: PrecisionEntry) -> dict[tuple[str, ...], Expression]:
    parts = {
        ("when",): entry.when,
        ("products",): entry.products,
        ("typical", "when"): entry.typical.when if entry.typical else None,
    }
    return {key: part for key, part in parts.items() if part is not None}


def _support_problems(operator: Operator) -> Iterator[OperatorProblem]:
    tensors = {field.name for field in operator.fields if field.is_tensor}
    required = tensors - {field.name for field in operator.fields if field.optional}
    levels: dict[str, list[Any]] = {}
    for index, table in enumerate(operator.support):
        # An optional tensor that a later level introduced is missing from older tables.
        if not required <= set(table.tensors) <= tensors:
            yield ("support", index), f"must list {', '.join(sorted(tensors))}"
        for name, support in table.tensors.items():
            if support.ranks[0] > support.ranks[1]:
                yield (
                    ("support", index, "tensors", name, "ranks"),
                    "must have the lowest rank first",
                )
        levels.setdefault(table.when.source if table.when else "", []).append(table.since)
        if table.when is not None:
            where = ("support", index, "when")
            yield from _unknown_names(operator, table.when, where, operator.terms)
    for name in operator.undocumented_data_types.keys() - tensors:
        yield ("undocumented_data_types", name), f"{operator.name} has no tensor {name}"
    for index, gap in enumerate(operator.gaps):
        if gap.tensor not in tensors:
            yield ("gaps", index, "tensor"), f"{operator.name} has no tensor {gap.tensor}"
    for group in levels.values():
        if group != sorted(set(group), reverse=True):
            yield ("support",), "must list each feature level once, the newest first"


def _level_problems(operator: Operator) -> Iterator[OperatorProblem]:
    if operator.since not in FEATURE_LEVELS:
        yield ("since",), unknown_level(operator.since)
    for index, table in enumerate(operator.support):
        if table.since not in FEATURE_LEVELS:
            yield ("support", index, "since"), unknown_level(table.since)
    for name in repeated(requirement.part for requirement in operator.level_requirements):
        yield ("level_requirements",), f"`{name}` is listed twice"
    for index, requirement in enumerate(operator.level_requirements):
        where = ("level_requirements", index)
        if requirement.since not in FEATURE_LEVELS:
            yield (*where, "since"), unknown_level(requirement.since)
        elif requirement.since <= operator.since:
            message = f"must be above {operator.since}, which introduced {operator.name}"
            yield (*where, "since"), message
        yield from _unknown_names(operator, requirement.when, (*where, "when"), operator.terms)


def _constraint_problems(operator: Operator) -> Iterator[OperatorProblem]:
    for name in repeated(constraint.name for constraint in operator.constraints):
        yield ("constraints",), f"{name} is listed twice"
    for index, constraint in enumerate(operator.constraints):
        where = ("constraints", index, "require")
        known = {*operator.terms, *loader.operator_sets()}
        yield from _unknown_names(operator, constraint.require, where, known)


def _precision_problems(operator: Operator, document: Document) -> Iterator[OperatorProblem]:
    outputs = {field.name for field in operator.of_kind(FieldKind.OUTPUT)}
    inputs = {field.name for field in operator.of_kind(FieldKind.INPUT)}
    if outputs != set(operator.precision):
        yield ("precision",), f"must have one rule for each of {', '.join(sorted(outputs))}"
    for output, entries in operator.precision.items():
        several = isinstance(document.data["precision"][output], list)
        for index, entry in enumerate(entries):
            where = ("precision", output, *((index,) if several else ()))
            last = index == len(entries) - 1
            if last != (entry.when is None):
                yield where, "every rule except the last must have a `when`, and the last must not"
            for key, expression in _expressions_of(entry).items():
                of_key = (*where, *key)
                yield from _unknown_names(operator, expression, of_key, operator.terms)
            if entry.flushed_by is not None and entry.flushed_by not in inputs:
                message = f"{operator.name} has no input tensor {entry.flushed_by}"
                yield (*where, "flushed_by"), message


def _unknown_names(
    operator: Operator,
    expression: Expression,
    where: tuple[str | int, ...],
    known: Iterable[str],
) -> Iterator[OperatorProblem]:
    names = {*known, *(field.name for field in operator.fields)}
    unknown = sorted(expression.names - names)
    if unknown:
        term = " or term" if operator.terms else ""
        above = " above it" if where[0] == "terms" else ""
        near = suggestion(unknown[0], names)
        yield where, f"{operator.name} has no field{term} {', '.join(unknown)}{above}{near}"


def unknown_level(level: str | FeatureLevel) -> str:
    """Return the message about a feature level that does not exist."""
    return f"{level} is not a feature level; they are {', '.join(map(str, FEATURE_LEVELS))}"


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def expression_problems(
    document: Document, where: Sequence[str | int], text: str
) -> Iterator[Problem]:
    """Yield a problem if the text at the key `where` of a file is not a valid expression."""
    try:
        Expression(text)
    except ExpressionError as error:
        yield document.problem(where, str(error))
