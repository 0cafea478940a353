"""Which cases a known failure concerns, and which versions of the software under test."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from dmlconf.cases.facts import names_of
from dmlconf.cases.model import Case
from dmlconf.expressions import Expression, ExpressionError

__all__ = [
    "Scope",
    "Version",
    "VersionRange",
    "fits",
    "is_pattern",
    "parse_version",
    "unknown_names",
]

Version = tuple[int, ...]
"""The numbers of a version, such as (1, 15, 4)."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The cases that meet all of some conditions.

    Attributes:
        operators: names of their operators; None for any.
        cases: their identifiers, `gather/matrix` for all cases of that matrix, or patterns in
            which `*` stands for any text and `?` for any character; None for any.
        where: a condition over their descs; None for any. A case that lacks what the condition
            reads does not meet it.
    """

    operators: frozenset[str] | None = None
    cases: frozenset[str] | None = None
    where: Expression | None = None

    def covers(self, case: Case) -> bool:
        """Tell whether a case meets all of the conditions."""
        if self.operators is not None and case.operator_name not in self.operators:
            return False
        if self.cases is not None and not _is_named(case.identifier, self.cases):
            return False
        return self.where is None or _holds(self.where, case)


def _is_named(identifier: str, names: frozenset[str]) -> bool:
    if identifier in names or identifier.partition("[")[0] in names:
        return True
    return any(fits(name, identifier) for name in names if is_pattern(name))


def is_pattern(name: str) -> bool:
    """Tell whether a name stands for every case that fits it: whether it has `*` or `?`."""
    return "*" in name or "?" in name


def fits(pattern: str, text: str) -> bool:
    """Tell whether a text fits a pattern, in which only `*` and `?` stand for other text."""
    return _pattern(pattern).fullmatch(text) is not None


@cache
def _pattern(name: str) -> re.Pattern[str]:
    # Brackets are part of identifiers, so they stand for themselves.
    return re.compile(re.escape(name).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def unknown_names(names: Iterable[str], identifiers: Iterable[str]) -> list[str]:
    """Return the names, as a scope has them, that no case of these identifiers has."""
    exact: set[str] = set()
    for identifier in identifiers:
        exact |= {identifier, identifier.partition("[")[0]}
    return [
        name
        for name in names
        if name not in exact and not (is_pattern(name) and any(fits(name, one) for one in exact))
    ]


def _holds(condition: Expression, case: Case) -> bool:
    try:
        return bool(condition.evaluate(names_of(case)))
    except ExpressionError:
        return False  # Such as the size of an optional tensor that is not there.


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions from a first to a last one, both included; `1.15` as the last includes 1.15.4.

    Attributes:
        first: the first version; None for any before the last.
        last: the last version; None for any after the first.
    """

    first: Version | None = None
    last: Version | None = None

    def holds(self, version: Version) -> bool:
        """Tell whether a version is among these."""
        if self.first is not None and version < self.first:
            return False
        return self.last is None or version[: len(self.last)] <= self.last


def parse_version(text: str) -> Version | None:
    """Return the numbers of a version; None where the text is none, such as `unknown`."""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None
