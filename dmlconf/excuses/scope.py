"""What an entry in a file of excuses covers: cases (`Scope`) and versions (`VersionRange`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from dmlconf.cases.facts import names_of
from dmlconf.cases.identifiers import fits, identifier_matcher, is_pattern
from dmlconf.cases.model import Case
from dmlconf.expressions import Budget, Expression, Namespace
from dmlconf.limits import MOST_SCOPE_STEPS

__all__ = [
    "Facts",
    "Scope",
    "Version",
    "VersionRange",
    "parse_version",
    "unknown_names",
]

Version = tuple[int, ...]
"""The numbers of a version, such as (1, 15, 4)."""

_NUMBER: Final = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Scope:
    """The cases that meet all conditions; None is no condition.

    Attributes:
        operators: names of operators.
        cases: identifiers, `gather/matrix` for all cases of that matrix, or patterns with `*` and
            `?`.
        where: a condition over the names of `dmlconf.cases.facts.names_of`. The condition is false
            if it cannot be evaluated.
    """

    operators: frozenset[str] | None = None
    cases: frozenset[str] | None = None
    where: Expression | None = None

    def covers(self, case: Case, facts: Facts | None = None) -> bool:
        """Return whether a case meets all conditions; scopes may share `facts` of the case."""
        if self.operators is not None and case.operator_name not in self.operators:
            return False
        if self.cases is not None and not _matcher(self.cases)(case.identifier):
            return False
        return self.where is None or (facts or Facts(case)).meet(self.where)


_matcher = cache(identifier_matcher)


class Facts:
    """The facts of a case that conditions read; all conditions share one budget of computation."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._budget = Budget(MOST_SCOPE_STEPS)

    @cached_property
    def _names(self) -> Namespace:
        return names_of(self._case)

    def meet(self, condition: Expression) -> bool:
        """Return whether a condition holds; False if it cannot be evaluated within the budget."""
        return condition.holds(self._names, self._budget)


def unknown_names(names: Iterable[str], identifiers: Iterable[str]) -> list[str]:
    """Return the names, as `Scope.cases` has them, that stand for none of these identifiers."""
    known = set(identifiers)
    exact = known | {identifier.partition("[")[0] for identifier in known}
    return [
        name
        for name in names
        if name not in exact and not (is_pattern(name) and any(fits(name, one) for one in known))
    ]


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions from `first` to `last`, both included; `1.15` as the last includes 1.15.4.

    None is no bound.
    """

    first: Version | None = None
    last: Version | None = None

    def holds(self, version: Version) -> bool:
        """Return whether the range includes a version."""
        if self.first is not None and version < self.first:
            return False
        return self.last is None or version[: len(self.last)] <= self.last


def parse_version(text: str) -> Version | None:
    """Return the numbers of a version; None for another text, such as `unknown`."""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(map(_NUMBER.fullmatch, parts)) else None
