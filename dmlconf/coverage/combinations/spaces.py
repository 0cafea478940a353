"""The parameters of families of operators, read from `schemas/combinations/`.

A parameter of a family is an expression over a desc, such as `OutputTensor.Sizes[-2]` for the rows
of a product. A case's value is the name of the first class whose condition holds, such as
`tile + 1` for 33 rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from dmlconf.catalogue.model import Entry, Operator
from dmlconf.catalogue.problems import expression_problems
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import Document, read_document
from dmlconf.documents.schema import bundled_checker, schema_problems
from dmlconf.expressions import Expression, ExpressionError, Namespace, namespace
from dmlconf.resources import schemas_directory

__all__ = ["Exclusion", "FamilyParameter", "Space", "read_spaces", "spaces_of"]


@dataclass(frozen=True, slots=True)
class FamilyParameter:
    """A parameter that a family's file describes.

    Attributes:
        value: an expression over the fields and terms of a desc and its first tensors, `Input` and
            `Output`; of a graph, over `graph_facts`. A case lacks the parameter if evaluation fails
            or gives None.
        classes: conditions over `Value`, by the name of the class; the first that holds counts.
    """

    name: str
    value: Expression
    classes: Mapping[str, Expression]

    def read(self, names: Namespace) -> str | None:
        """Return the class of a case; None if no class holds, or the case lacks the parameter."""
        try:
            value = self.value.evaluate(names)
        except ExpressionError:
            return None
        return None if value is None else self._class(value)

    def class_of(self, names: Namespace) -> str | None:
        """Return the class of a partly known desc; None if no class holds.

        Raises:
            ExpressionError: the class depends on an unknown part.
        """
        names["Value"] = self.value.evaluate(names)
        return next((n for n, holds in self.classes.items() if holds.evaluate(names)), None)

    def _class(self, value: Any) -> str | None:
        names = namespace({"Value": value})
        for name, condition in self.classes.items():
            try:
                if condition.evaluate(names):
                    return name
            except ExpressionError:
                continue
        return None


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Values that cannot go together, or one value that is impossible.

    Attributes:
        when: one or two pairs: a pattern of a parameter's name, and a pattern of its value.
        because: the reason, as a sentence.
    """

    when: tuple[tuple[str, str], ...]
    because: str

    def excludes(self, values: tuple[tuple[str, str], ...]) -> bool:
        """Return whether parameters with these values are excluded."""
        return all(
            any(fnmatchcase(name, p) and fnmatchcase(value, v) for name, value in values)
            for p, v in self.when
        )


@dataclass(frozen=True, slots=True)
class Space:
    """The parameters that a family of operators has in addition to those from the catalogue.

    Attributes:
        operators: patterns of names; if empty, all operators, but no graphs.
        has_fields: fields that an operator of the family must have.
    """

    operators: tuple[str, ...]
    has_fields: frozenset[str]
    parameters: tuple[FamilyParameter, ...]
    excluded: tuple[Exclusion, ...]

    def concerns(self, entry: Entry) -> bool:
        """Return whether an operator, or graphs, are of the family."""
        if not isinstance(entry, Operator):
            return entry.name in self.operators
        if self.operators and not any(fnmatchcase(entry.name, p) for p in self.operators):
            return False
        return self.has_fields <= {field.name for field in entry.fields}


@cache
def spaces_of(entry: Entry) -> tuple[Space, ...]:
    """Return the spaces of the families that an operator belongs to."""
    return tuple(space for space in read_spaces() if space.concerns(entry))


@cache
def read_spaces() -> tuple[Space, ...]:
    """Return all spaces, in the order of their files.

    Raises:
        InvalidFilesError: a file cannot be read or is not valid.
    """
    folder = schemas_directory() / "combinations"
    documents = [read_document(path) for path in sorted(folder.glob("*.yaml"))]
    check = bundled_checker("combinations")
    problems = [p for each in documents for p in schema_problems(each, check, each.data)]
    shared: dict[str, Mapping[str, str]] = {}
    if not problems:
        for document in documents:
            shared.update(document.data.get("classes", {}))
        problems = [p for document in documents for p in _problems(document, shared)]
    if problems:
        raise InvalidFilesError(problems)
    return tuple(
        _space(entry, shared)
        for document in documents
        for entry in document.data.get("families", ())
    )


def _problems(document: Document, shared: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    for name, classes in document.data.get("classes", {}).items():
        for each, condition in classes.items():
            yield from expression_problems(document, ("classes", name, each), condition)
    for at, family in enumerate(document.data.get("families", ())):
        for index, data in enumerate(family.get("parameters", ())):
            where = ("families", at, "parameters", index)
            yield from expression_problems(document, (*where, "value"), data["value"])
            classes = data["classes"]
            if not isinstance(classes, str):
                for each, condition in classes.items():
                    yield from expression_problems(document, (*where, "classes", each), condition)
            elif classes not in shared:
                yield document.problem(
                    (*where, "classes"), f"no file has classes {classes!r}", _known(shared)
                )


def _known(shared: Mapping[str, Any]) -> str:
    return f"one of {', '.join(sorted(shared))}" if shared else "list them in common.yaml"


def _space(data: Mapping[str, Any], shared: Mapping[str, Mapping[str, str]]) -> Space:
    return Space(
        operators=tuple(data.get("operators", ())),
        has_fields=frozenset(data.get("has_fields", ())),
        parameters=tuple(_parameter(each, shared) for each in data.get("parameters", ())),
        excluded=tuple(
            Exclusion(tuple(each["when"].items()), " ".join(each["because"].split()))
            for each in data.get("excluded", ())
        ),
    )


def _parameter(data: Mapping[str, Any], shared: Mapping[str, Mapping[str, str]]) -> FamilyParameter:
    classes = data["classes"]
    if isinstance(classes, str):
        classes = shared[classes]
    return FamilyParameter(
        data["name"],
        Expression(data["value"]),
        {name: Expression(condition) for name, condition in classes.items()},
    )
