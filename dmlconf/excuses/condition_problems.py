"""Problems of the operators and the condition of an entry, such as a waiver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from dmlconf.cases.conditions import read_condition, unknown_names
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name, operator_names
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import Document
from dmlconf.expressions import ExpressionError

__all__ = ["condition_problems", "operator_problems"]

_Key = Sequence[str | int]


def operator_problems(document: Document, where: _Key, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each name in the list at `where` that no operator has."""
    for index, name in enumerate(names):
        try:
            operator_name(name)
        except UnknownOperatorError as error:
            yield document.problem((*where, index), str(error))


def condition_problems(
    document: Document,
    where: _Key,
    text: str,
    operators: Collection[str] = (),
    cases: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield problems of a condition: it cannot be read, or all operators of the entry lack a name.

    Names are not checked if the entry has cases but no operators, and a case may be a graph:
    tensors of graphs may have any name.

    Args:
        where: the key of the condition.
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
