"""Problems of the operators and the condition of an entry, such as a waiver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dmlconf.cases.conditions import read_condition, unknown_names
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name, operator_names
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import Document
from dmlconf.expressions import ExpressionError
from dmlconf.translation.names import named_operators

__all__ = ["condition_problems", "operator_problems", "require_operators"]

_Key = Sequence[str | int]


def operator_problems(document: Document, where: _Key, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each name of an operator that the catalogue does not know.

    For a short name, or a name in ONNX or WebNN, the problem lists the operators that are meant.

    Args:
        where: the key of the list of names.
    """
    for index, name in enumerate(names):
        try:
            operator_name(name)
        except UnknownOperatorError as error:
            message = f"{error.message}; {_meant(name) or error.hint}"
            yield document.problem((*where, index), message)


def _meant(name: str) -> str | None:
    try:
        return f"did you mean {' or '.join(named_operators(name))}?"
    except UnknownOperatorError:
        return None


def require_operators(document: Document, entries: str) -> Sequence[Mapping[str, Any]]:
    """Return the list of entries under a key, after a check of their operators.

    Raises:
        InvalidFilesError: entries name unknown operators.
    """
    listed: Sequence[Mapping[str, Any]] = document.data[entries]
    problems = [
        problem
        for index, each in enumerate(listed)
        for problem in operator_problems(
            document, (entries, index, "operators"), each.get("operators", ())
        )
    ]
    if problems:
        raise InvalidFilesError(problems)
    return listed


def condition_problems(
    document: Document,
    where: _Key,
    text: str,
    operators: Collection[str] = (),
    cases: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield problems of a condition: unreadable text, or a name that all the operators lack.

    Without `operators`, names are not checked if a case may be a graph, whose tensors may have any
    name.

    Args:
        operators: the operators that the entry names.
        cases: the cases that the entry names; their operators count if `operators` is empty.
    """
    try:
        condition = read_condition(text)
    except ExpressionError as error:
        yield document.problem(where, str(error))
        return
    known = _known(operators) if operators else _of_cases(cases)
    if cases and not known:
        return
    owners = " and ".join(known) or "no operator"
    for unknown in unknown_names(condition, known):
        message = f"{owners} has {'no ' if known else ''}{unknown.name}"
        yield document.problem(where, message, unknown.hint)


def _known(names: Iterable[str]) -> list[str]:
    known = []
    for name in names:
        with suppress(UnknownOperatorError):
            known.append(operator_name(name))
    return known


def _of_cases(cases: Iterable[str]) -> list[str]:
    """Return the operators of identifiers or patterns; none if one is not of a known operator."""
    names = {case.partition("/")[0].upper() for case in cases}
    return sorted(names) if names.issubset(operator_names()) else []
