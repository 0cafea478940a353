"""Read and check the list of DirectML's known faults, `schemas/known-faults.yaml`.

The module `known_faults` says which failures they explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import Environment
from dmlconf.backends.subject import tested_environment
from dmlconf.catalogue.loader import operator_name
from dmlconf.catalogue.problems import expression_problems
from dmlconf.documents.problems import Problem
from dmlconf.documents.reader import Document, read_document
from dmlconf.documents.schema import checked_document, problems_in
from dmlconf.excuses.condition_problems import operator_problems
from dmlconf.excuses.known_faults import (
    NO_KNOWN_FAULTS,
    ConstantCondition,
    KnownFault,
    KnownFaults,
    NodeCondition,
)
from dmlconf.excuses.scope import Version, VersionRange, parse_version
from dmlconf.expressions import Expression, suggestion
from dmlconf.resources import schemas_directory

__all__ = [
    "faults_of_version",
    "known_faults",
    "lint_known_faults",
    "measured_versions",
    "read_known_faults",
]

_GRAPH: Final = "graph"


def known_faults(environment: Environment) -> KnownFaults:
    """Return the known faults of the DirectML that a backend runs, or that a recording comes from.

    There are none if the backend is not DirectML, or if the version is unknown.

    Raises:
        InvalidFilesError: the list cannot be read.
    """
    tested = tested_environment(environment)
    version = parse_version(tested["version"])
    if tested["backend"] != "directml" or version is None:
        return NO_KNOWN_FAULTS
    as_graph = tested["details"].get("compile") == _GRAPH
    return KnownFaults(tested["version"], faults_of_version(version), as_graph)


def faults_of_version(version: Version, path: Path | None = None) -> tuple[KnownFault, ...]:
    """Return the known faults of a version of DirectML.

    An untested version has the faults of the tested versions before and after it: 1.14.0 has those
    of 1.13.1 and of 1.14.1. A version older than all tested ones has the faults of the oldest. A
    version newer than all has none, except that 1.15.4.1 has those of 1.15.4.

    Args:
        path: a list to read instead of `schemas/known-faults.yaml`.

    Raises:
        InvalidFilesError: the list cannot be read.
    """
    tested = measured_versions(path)
    newer = [each for each in tested if each >= version]
    neighbours = {max((each for each in tested if each <= version), default=version), *newer[:1]}
    compared = neighbours if newer else {version}
    return tuple(
        fault
        for fault in read_known_faults(path)
        if any(VersionRange(fault.first, fault.last).holds(each) for each in compared)
    )


@cache
def measured_versions(path: Path | None = None) -> tuple[Version, ...]:
    """Return the tested versions of DirectML, the oldest first.

    Raises:
        InvalidFilesError: the list cannot be read.
    """
    document = read_document(path or _file())
    return tuple(sorted(parse_version(each) or () for each in document.data["tested"]))


@cache
def read_known_faults(path: Path | None = None) -> tuple[KnownFault, ...]:
    """Return the list of DirectML's known faults.

    Raises:
        InvalidFilesError: the file cannot be read, does not fit its schema, or has problems such
            as unknown names.
    """
    return tuple(map(_fault, _document(path).data["faults"]))


def lint_known_faults(path: Path | None = None) -> list[Problem]:
    """Return the violations of the list's schema or, if there are none, other problems."""
    return problems_in(lambda: _document(path))


def _file() -> Path:
    return schemas_directory() / "known-faults.yaml"


def _document(path: Path | None) -> Document:
    return checked_document(path or _file(), "known-faults", _problems)


def _problems(document: Document) -> Iterator[Problem]:
    from dmlconf.faults.formulas import FORMULAS

    yield from document.repeated_names("faults")
    for index, data in enumerate(document.data["faults"]):
        where = ("faults", index)
        first, last = (parse_version(data["versions"][end]) or () for end in ("first", "last"))
        for end in ("first", "last"):
            if data["versions"][end] not in document.data["tested"]:
                message = f"{data['versions'][end]} is none of the versions under `tested`"
                yield document.problem((*where, "versions", end), message)
        if first > last:
            message = f"{data['versions']['first']} is newer than {data['versions']['last']}"
            yield document.problem((*where, "versions"), message)
        yield from _condition_problems(document, data, where)
        for part in ("node", "constant"):
            yield from _condition_problems(document, data.get(part, {}), (*where, part))
        formula = data.get("computed_by")
        if formula is not None and formula not in FORMULAS:
            message = f"dmlconf.faults has no function {formula}{suggestion(formula, FORMULAS)}"
            yield document.problem((*where, "computed_by"), message)


def _condition_problems(
    document: Document, data: Mapping[str, Any], where: tuple[str | int, ...]
) -> Iterator[Problem]:
    yield from operator_problems(document, (*where, "operators"), data.get("operators", ()))
    if "when" in data:
        yield from expression_problems(document, (*where, "when"), data["when"])


def _fault(data: Mapping[str, Any]) -> KnownFault:
    from dmlconf.faults.formulas import FORMULAS

    first, last = (parse_version(data["versions"][end]) or () for end in ("first", "last"))
    return KnownFault(
        name=data["name"],
        reason=" ".join(data["reason"].split()),
        first=first,
        last=last,
        operators=frozenset(map(operator_name, data["operators"])),
        outcome=data["outcome"],
        cases=frozenset(data["cases"]) if "cases" in data else None,
        when=Expression(data["when"]) if "when" in data else None,
        node=_node(data["node"]) if "node" in data else None,
        constant=_constant(data["constant"]) if "constant" in data else None,
        breaks=frozenset(data["breaks"]) if "breaks" in data else None,
        formula=FORMULAS[data["computed_by"]] if "computed_by" in data else None,
        circumstance=data.get("circumstance"),
        graph=data.get("compile") == _GRAPH,
        nodes=data.get("nodes", True),
        alone=data.get("alone", False),
        title=data.get("title", ""),
        kernels=" ".join(data.get("seen_on", "").split()),
        instead=" ".join(data.get("instead", "").split()),
        example=data.get("example", ""),
        not_computed=" ".join(data.get("not_computed", "").split()),
    )


def _constant(data: Mapping[str, Any]) -> ConstantCondition:
    return ConstantCondition(Expression(data["when"]))


def _node(data: Mapping[str, Any]) -> NodeCondition:
    operators = frozenset(map(operator_name, data["operators"]))
    return NodeCondition(operators, Expression(data["when"]))
