"""Check the catalogue's files by their JSON Schemas, and whether their parts fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.catalogue import loader
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.catalogue.problems import operator_problems, repeated, unknown_level
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import Document, read_document
from dmlconf.documents.schema import checked_document, problems_in
from dmlconf.expressions import Expression, ExpressionError
from dmlconf.resources import schemas_directory

__all__ = ["lint_catalogue", "lint_common", "lint_operator"]

LONGEST_EXPRESSION: Final = 200
"""The most characters of an expression in the catalogue."""


def lint_catalogue() -> list[Problem]:
    """Return the problems of the catalogue's files, and the names that several operators share."""
    problems = lint_common(schemas_directory() / "common.yaml")
    names: Counter[str] = Counter()
    for path in loader.operator_files():
        problems += lint_operator(path)
        try:
            operator = loader.operator_from(read_document(path).data)
        except (InvalidFilesError, LookupError, TypeError, ValueError):
            continue
        names.update((operator.name, *operator.aliases))
    problems += [
        Problem(schemas_directory() / "operators", f"{name} names more than one operator")
        for name, count in names.items()
        if count > 1
    ]
    return problems


def lint_operator(path: Path) -> list[Problem]:
    """Return the problems of an operator's file; later checks run only if earlier ones succeed."""
    problems = _schema(path, "operator")
    if problems:
        return problems
    document = read_document(path)
    unreadable = [
        *_unreadable_values(document, ("terms",)),
        *_unreadable_values(document, ("specialises", "computed")),
        *_unreadable_bounds(document),
        *_unreadable(document, "constraints", "require"),
        *_unreadable(document, "support", "when"),
        *_unreadable(document, "level_requirements", "when"),
        *_unreadable_precision(document),
    ]
    if not unreadable:
        unreadable = [document.problem(where, why) for where, why in _dangling(document.data)]
    if unreadable:
        return unreadable
    operator = loader.operator_from(document.data)
    return [
        document.problem(where, message) for where, message in operator_problems(operator, document)
    ]


def _dangling(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield where a shared constraint cannot be used, or `like` names no row above, and why."""
    fields = {field["name"] for field in data["fields"]}
    for index, constraint in enumerate(data["constraints"]):
        if loader.is_shared(constraint):
            try:
                loader.shared_constraint(constraint, fields)
            except LookupError as error:
                yield ("constraints", index), str(error)
    for index, table in enumerate(data["support"]):
        above: set[str] = set()
        for name, row in table["tensors"].items():
            if "like" in row and row["like"] not in above:
                where = ("support", index, "tensors", name, "like")
                yield where, f"no tensor {row['like']} is above {name} in this table"
            above.add(name)


def lint_common(path: Path) -> list[Problem]:
    """Return the problems of `common.yaml`; later checks run only if earlier ones succeed."""
    problems = _schema(path, "common")
    if problems:
        return problems
    document = read_document(path)
    problems = _unreadable(document, "tensor_constraints", "require")
    problems += _unreadable(document, "shared_constraints", "require")
    if problems:
        return problems
    for index, constraint in enumerate(document.data["tensor_constraints"]):
        unknown = Expression(constraint["require"]).names - {"Tensor"}
        if unknown:
            where = ("tensor_constraints", index, "require")
            message = f"only Tensor is known here, not {', '.join(sorted(unknown))}"
            problems.append(document.problem(where, message))
    problems += _unknown_members(document)
    problems += _enum_problems(document)
    for section in ("tensor_constraints", "shared_constraints"):
        for name in repeated(entry["name"] for entry in document.data[section]):
            problems.append(document.problem((section,), f"{name} is listed twice"))
    return problems


def _unknown_members(document: Document) -> Iterator[Problem]:
    operators = set(loader.operator_names())
    for name, members in document.data["operator_sets"].items():
        for index, member in enumerate(members):
            if member not in operators:
                message = f"the catalogue has no operator {member}"
                yield document.problem(("operator_sets", name, index), message)


def _enum_problems(document: Document) -> Iterator[Problem]:
    for name, enum in document.data["enums"].items():
        for constant, level in enum.get("since", {}).items():
            where = ("enums", name, "since", constant)
            if constant not in enum["values"]:
                yield document.problem(where, f"{name} has no constant {constant}")
            if FeatureLevel.parse(level) not in FEATURE_LEVELS:
                yield document.problem(where, unknown_level(level))


def _expression_error(text: str) -> str | None:
    """Return why an expression cannot be parsed or is too long to read; None if it is fine."""
    try:
        length = len(str(Expression(text)))
    except ExpressionError as error:
        return str(error)
    if length <= LONGEST_EXPRESSION:
        return None
    return (
        f"an expression of {length} characters; at most {LONGEST_EXPRESSION}: name a part of it "
        "under `terms`"
    )


def _unreadable(document: Document, section: str, key: str) -> list[Problem]:
    problems = []
    for index, entry in enumerate(document.data.get(section, ())):
        error = _expression_error(entry.get(key, "True")) if isinstance(entry, dict) else None
        if error is not None:
            problems.append(document.problem((section, index, key), error))
    return problems


def _unreadable_bounds(document: Document) -> Iterator[Problem]:
    for index, field in enumerate(document.data["fields"]):
        if "bounds" in field:
            error = _expression_error(field["bounds"]["high"])
            if error is not None:
                yield document.problem(("fields", index, "bounds", "high"), error)


def _unreadable_values(document: Document, section: tuple[str, ...]) -> Iterator[Problem]:
    values = document.data
    for key in section:
        values = values.get(key, {})
    for name, text in values.items():
        error = _expression_error(text)
        if error is not None:
            yield document.problem((*section, name), error)


def _unreadable_precision(document: Document) -> Iterator[Problem]:
    for output, rules in document.data["precision"].items():
        several = isinstance(rules, list)
        for index, rule in enumerate(rules if several else [rules]):
            where = ("precision", output, *((index,) if several else ()))
            written: dict[tuple[str, ...], Any] = {
                (key,): rule.get(key, "True") for key in ("when", "products")
            }
            written["typical", "when"] = rule.get("typical", {}).get("when", "True")
            for key, text in written.items():
                error = _expression_error(str(text))
                if error is not None:
                    yield document.problem((*where, *key), error)


def _schema(path: Path, schema: str) -> list[Problem]:
    return problems_in(lambda: checked_document(path, schema))
