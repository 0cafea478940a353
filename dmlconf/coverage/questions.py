"""Count the cases of each operator that ask the questions of `schemas/questions.yaml`.

A question has parts. A case of ARGMAX asks the part `INT64: from 2^31` of `ends-of-words` if its
input has 2^31 or 2^31 + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dmlconf.cases.data_facts import MOST_ELEMENTS
from dmlconf.cases.facts import names_of
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.catalogue.problems import expression_problems
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.coverage.data_classes import DATA_CLASSES, DataClass
from dmlconf.coverage.valid_cases import valid_cases
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import Document
from dmlconf.documents.schema import checked_document
from dmlconf.expressions import Expression, ExpressionError
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import DataType

__all__ = ["Question", "QuestionCoverage", "measure_questions", "read_questions"]

_ABSENT: Mapping[str, Any] = {
    "Axis": -1,
    "Axes": (),
    "WindowSizes": None,
    "WindowSize": None,
    "InputWindowSizes": None,
    "FilterSizes": None,
    "ConstantBytes": (),
}
"""The values that conditions read for names that an operator or a graph lacks."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        because: what was once wrong: the name of a known fault, or a sentence.
        operators: the only operators about which to ask, or `GRAPHS`; None for all operators, but
            no graphs.
        has_field: only operators with one of these fields count; empty for any.
        inputs: the inputs whose data decide whether a case asks.
        data_types: the data types of `inputs` for which the question is asked.
        data: the class of data; None if `conditions` decide instead.
        conditions: for each part, the condition that a case must meet.
        derived: `dimensions` or `in_place` if the catalogue gives the parts; else empty.
    """

    name: str
    asks: str
    because: str
    operators: frozenset[str] | None = None
    has_field: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    data_types: tuple[str, ...] = ()
    data: DataClass | None = None
    conditions: Mapping[str, Expression] = field(default_factory=dict)
    derived: str = ""

    def parts(self, operator: Operator) -> Iterator[str]:
        """Yield the parts of the question for an operator, such as one for each data type."""
        if self.operators is not None and operator.name not in self.operators:
            return
        names = {each.name for each in operator.fields}
        if self.has_field and not self.has_field & names:
            return
        if self.data is not None:
            for data_type in self._asked_types(operator):
                yield from (f"{data_type}: {part}" for part in self.data.parts(data_type))
        elif self.derived == "in_place":
            yield from (f"{pair.output} as {pair.input}" for pair in operator.in_place)
        elif self.derived == "dimensions":
            yield from (f"{rank} dimensions" for rank in _ranks(operator))
        else:
            yield from self.conditions

    def _asked_types(self, operator: Operator) -> list[DataType]:
        supported = {
            data_type
            for table in operator.support
            for tensor, row in table.tensors.items()
            if tensor in _bases(self.inputs) and not _has_bounds(operator, tensor)
            for data_type in row.data_types
        }
        return [DataType(name) for name in self.data_types if name in supported]

    def asked_by(self, case: Case) -> Iterator[str]:
        """Yield the parts that a valid case asks, which may include some that `parts` lacks."""
        operator = case.entry
        if self.operators is not None and case.operator_name not in self.operators:
            return
        if self.data is not None:
            for name, entry, tensor in tensors_of(operator, case.desc, FieldKind.INPUT):
                if name not in self.inputs or str(tensor.DataType) not in self.data_types:
                    continue
                if entry.bounds is None and tensor.ElementCount <= MOST_ELEMENTS:
                    with suppress(ValueError, OverflowError, TypeError):
                        found = self.data.parts_in(case.input(name))
                        yield from (f"{tensor.DataType}: {part}" for part in found)
        elif self.derived == "in_place":
            yield from (f"{output} as {source}" for output, source in case.in_place.items())
        elif self.derived == "dimensions":
            tensors = tensors_of(operator, case.desc)
            yield from {f"{t.DimensionCount} dimensions": None for _, _, t in tensors}
        else:
            names = case.once("names in questions", lambda: _names(case))
            for part, condition in self.conditions.items():
                with suppress(ExpressionError):
                    if condition.evaluate(names):
                        yield part


def _bases(inputs: Iterable[str]) -> set[str]:
    return {TensorRef.of(name).field for name in inputs}


def _has_bounds(operator: Operator, tensor: str) -> bool:
    return any(entry.name == tensor and entry.bounds is not None for entry in operator.fields)


def _ranks(operator: Operator) -> list[int]:
    gaps = {
        (gap.tensor, rank)
        for gap in operator.gaps
        for rank in range(gap.ranks[0], gap.ranks[1] + 1)
    }
    ranks = {
        rank
        for table in operator.support
        for tensor, row in table.tensors.items()
        for rank in range(row.ranks[0], row.ranks[1] + 1)
        if (tensor, rank) not in gaps
    }
    return sorted(ranks)


def _names(case: Case) -> dict[str, Any]:
    tensors: list[TensorDesc] = [tensor for _, _, tensor in tensors_of(case.entry, case.desc)]
    names = {**_ABSENT, **names_of(case, _NO_DATA)}
    names["AxisSizes"] = tuple({size: None for t in tensors for size in t.Sizes})
    filters = case.desc.get("FilterTensor")
    names["FilterSizes"] = filters.Sizes[2:] if isinstance(filters, TensorDesc) else None
    names["ConstantBytes"] = tuple(each.data.nbytes for each in case.graph.constants)
    return names


_NO_DATA = Expression("True")
"""A condition that reads no data, so none is examined."""


@cache
def read_questions() -> tuple[Question, ...]:
    """Return the questions.

    Raises:
        InvalidFilesError: the file cannot be read or is not valid.
    """
    document = checked_document(schemas_directory() / "questions.yaml", "questions", _problems)
    return tuple(map(_question, document.data["questions"]))


def _problems(document: Document) -> Iterator[Problem]:
    yield from document.repeated_names("questions")
    for index, data in enumerate(document.data["questions"]):
        parts = data.get("parts", {})
        for name, condition in parts.items() if isinstance(parts, dict) else ():
            yield from expression_problems(document, ("questions", index, "parts", name), condition)


def _question(data: Mapping[str, Any]) -> Question:
    parts = data.get("parts", {})
    named = isinstance(parts, str)
    return Question(
        name=data["name"],
        asks=" ".join(data["asks"].split()),
        because=" ".join(data["because"].split()),
        operators=frozenset(data["operators"]) if "operators" in data else None,
        has_field=frozenset(data.get("has_field", ())),
        inputs=frozenset(data.get("inputs", ())),
        data_types=tuple(data.get("data_types", ())),
        data=DATA_CLASSES[data["data"]] if "data" in data else None,
        conditions={} if named else {name: Expression(text) for name, text in parts.items()},
        derived=parts if named else "",
    )


@dataclass(slots=True)
class QuestionCoverage:
    """What a suite asks of one operator.

    Attributes:
        asked: the number of cases by question and part.
    """

    operator: str
    asked: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Questions and parts that no case asks."""
        return [part for part, count in self.asked.items() if not count]

    def share(self, question: str | None = None) -> tuple[int, int]:
        """Return how many parts of a question, or of all, are asked, and how many there are."""
        counts = [n for (name, _), n in self.asked.items() if question in (None, name)]
        return sum(map(bool, counts)), len(counts)


def measure_questions(
    operators: Iterable[Operator],
    cases: Iterable[Case],
    advance: Callable[[], None] = lambda: None,
) -> dict[str, QuestionCoverage]:
    """Return the questions that valid cases ask of each operator and of `GRAPHS`, by name."""
    questions = read_questions()
    coverage = {
        operator.name: QuestionCoverage(
            operator.name,
            {(each.name, part): 0 for each in questions for part in each.parts(operator)},
        )
        for operator in operators
    }
    coverage[GRAPHS] = QuestionCoverage(
        GRAPHS,
        {
            (each.name, part): 0
            for each in questions
            if each.operators is not None and not each.operators.isdisjoint({GRAPHS})
            for part in each.conditions
        },
    )
    for case in valid_cases(cases, coverage, advance):
        asked = coverage[case.operator_name].asked
        for question in questions:
            for part in set(question.asked_by(case)):
                if (question.name, part) in asked:
                    asked[question.name, part] += 1
    return coverage
