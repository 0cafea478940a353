"""Identifiers of cases: make them unique, digest them, and find those that users mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from hashlib import sha256

from dmlconf.cases.handles import cases_of_handle
from dmlconf.catalogue.loader import UnknownOperatorError, operator_name
from dmlconf.documents.wording import first_names

__all__ = [
    "AmbiguousNameError",
    "Scope",
    "cases_digest",
    "fits",
    "identifier_matcher",
    "is_pattern",
    "resolved",
    "scope_of",
    "unique_name",
]

Scope = tuple[frozenset[str], frozenset[tuple[str, str]]]
"""Operators, and files such as `("GEMM", "matrix")`; an empty set stands for all."""

_ANYWHERE: Scope = (frozenset(), frozenset())


class AmbiguousNameError(ValueError):
    """A short name that several cases or matrices have; the message lists some of them."""


def cases_digest(identifiers: Iterable[str]) -> str:
    """Return the SHA-256 of the sorted identifiers of cases, one per line, in hexadecimal."""
    digest = sha256()
    for identifier in sorted(identifiers):
        digest.update(identifier.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def unique_name(text: str, used: set[str]) -> str:
    """Return `text`, or `text-2` and so on if it is in `used`, and add the name to `used`."""
    name, count = text, 1
    while name in used:
        count += 1
        name = f"{text}-{count}"
    used.add(name)
    return name


def is_pattern(name: str) -> bool:
    """Return whether the name has a wildcard: `*` for any text, `?` for any character."""
    return "*" in name or "?" in name


def fits(pattern: str, text: str) -> bool:
    """Return whether a text fits a pattern."""
    return _pattern(pattern).fullmatch(text) is not None


@cache
def _pattern(name: str) -> re.Pattern[str]:
    # Brackets are literal, since identifiers contain them. Only the last `*` backtracks: matching
    # takes long if many do.
    first, *others = (re.escape(part).replace(r"\?", ".") for part in name.split("*"))
    if not others:
        return re.compile(first, re.DOTALL)
    *middle, last = others
    parts = "".join(f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{parts}.*{last}", re.DOTALL)


def identifier_matcher(names: Collection[str]) -> Callable[[str], bool]:
    """Return a predicate: whether an identifier is one of the names or fits one of the patterns.

    The name of a matrix, such as `gather/matrix`, stands for all its cases.
    """
    patterns = [_pattern(name) for name in names if is_pattern(name)]
    exact = frozenset(names)

    def matches(identifier: str) -> bool:
        if identifier in exact or identifier.partition("[")[0] in exact:
            return True
        return any(pattern.fullmatch(identifier) for pattern in patterns)

    return matches


def resolved(names: Iterable[str], identifiers: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the identifiers that the names stand for, and the names that stand for none.

    A name may be the end of an identifier, as `stated` of `tile/tile/stated`, or else a handle,
    such as `k3f9a`. Names of matrices, and patterns that a case fits, stay as they are.

    Raises:
        AmbiguousNameError: a short name stands for several cases or matrices.
    """
    exact = {*identifiers, *(identifier.partition("[")[0] for identifier in identifiers)}
    full: list[str] = []
    unknown: list[str] = []
    for name in names:
        if name in exact:
            full.append(name)
        elif is_pattern(name):
            matches = identifier_matcher([name])
            (full if any(map(matches, identifiers)) else unknown).append(name)
        else:
            ends = sorted(each for each in exact if each.endswith(f"/{name}"))
            ends = ends or sorted(cases_of_handle(name, identifiers))
            if len(ends) > 1:
                message = f"several cases are called {name}: {first_names(ends, 5)}"
                raise AmbiguousNameError(message)
            full += ends
            unknown += [] if ends else [name]
    return full, unknown


def scope_of(names: Iterable[str]) -> Scope:
    """Return the operators and files that may have cases of these names.

    `gemm/matrix` gives GEMM and its file `matrix`; `gemm/ma*` gives GEMM and all files; `stated`
    gives everything. Several names give at least what each gives; empty `names` give everything.
    """
    operators: set[str] = set()
    files: set[tuple[str, str]] | None = set()
    for name in names:
        first, slash, rest = name.partition("/")
        if not slash or is_pattern(first):
            return _ANYWHERE
        try:
            operators.add(operator_name(first))
        except UnknownOperatorError:
            return _ANYWHERE
        stem = re.split(r"[/\[]", rest, maxsplit=1)[0]
        if is_pattern(stem):
            files = None
        elif files is not None:
            files.add((operator_name(first), stem))
    return frozenset(operators), frozenset(files or ())
