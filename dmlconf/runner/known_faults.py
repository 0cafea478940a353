"""DirectML's own known faults: cases that fail because of one are waived on every device.

The list is `schemas/known-faults.yaml`, by version of DirectML. It holds for the backend `directml`
and for recordings of it. A case that passes despite a listed fault has passed: a driver's
metacommand may replace the kernel that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.subject import tested_environment
from dmlconf.cases.facts import names_of_node
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import operator_name
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.reader import Document, read_document
from dmlconf.documents.schema import bundled_schema, schema_problems, validator
from dmlconf.expressions import Expression, ExpressionError
from dmlconf.graphs.model import Node
from dmlconf.resources import schemas_directory
from dmlconf.runner.scope import Scope, Version, VersionRange, parse_version
from dmlconf.runner.verdict import Reason, ReasonKind, Status, Verdict

__all__ = [
    "NO_KNOWN_FAULTS",
    "KnownFault",
    "KnownFaults",
    "NodeCondition",
    "known_faults",
    "lint_known_faults",
    "read_known_faults",
]

_OUTPUTS: Final = "outputs"
_GRAPH: Final = "graph"


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition on the nodes of a graph.

    Attributes:
        operators: the names of operators, one of which the node has.
        when: a condition over its desc.
    """

    operators: frozenset[str]
    when: Expression

    def holds(self, case: Case) -> bool:
        """Return whether a graph has such a node; False for a single operator."""
        if not isinstance(case, GraphCase):
            return False
        return any(
            node.operator_name in self.operators and self._meets(node)
            for node in case.graph.operator_nodes
        )

    def _meets(self, node: Node) -> bool:
        try:
            return bool(self.when.evaluate(names_of_node(node)))
        except ExpressionError:
            return False  # Such as the size of an absent optional tensor.


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One fault of DirectML.

    Attributes:
        name: what to call it.
        reason: what DirectML does, as a sentence.
        first: the first version that has it, of those tested.
        last: the last one.
        operators: names of the operators that have it.
        outcome: how it shows: `outputs` if the case runs and its outputs are wrong, `crash`, or
            a refusal such as `E_INVALIDARG by CreateOperator`.
        cases: identifiers of the affected cases; None for all.
        when: a condition on the desc that these cases meet; None for all.
        node: a node that these cases, graphs, have; None for any.
        circumstance: the only circumstance under which it shows; None for any, and for plain runs.
        graph: whether it shows only in operators that are compiled as graphs.
        alone: whether its cases may harm others in the same process.
    """

    name: str
    reason: str
    first: Version
    last: Version
    operators: frozenset[str]
    outcome: str
    cases: frozenset[str] | None = None
    when: Expression | None = None
    node: NodeCondition | None = None
    circumstance: str | None = None
    graph: bool = False
    alone: bool = False

    def concerns(self, case: Case) -> bool:
        """Return whether the fault affects a case."""
        if not Scope(self.operators, self.cases, self.when).covers(case):
            return False
        return self.node is None or self.node.holds(case)

    def explains(self, case: Case, outcome: Outcome, circumstance: str | None = None) -> bool:
        """Return whether the fault explains why a case did not pass.

        Args:
            case: the case.
            outcome: of the case.
            circumstance: the one under which it failed; None if it failed plainly.
        """
        if self.circumstance not in (None, circumstance):
            return False
        return self.concerns(case) and _form(outcome) == self.outcome


def _form(outcome: Outcome) -> str | None:
    match outcome:
        case Outputs():
            return _OUTPUTS
        case Rejection():
            return f"{outcome.hresult} by {outcome.stage}"
        case Breakdown(kind=BreakdownKind.CRASH | BreakdownKind.DEVICE_REMOVED as kind):
            return str(kind)
    return None


@dataclass(frozen=True, slots=True)
class KnownFaults:
    """The faults of the DirectML under test.

    Attributes:
        version: its version, for messages; empty if no DirectML is tested.
        faults: those that it has.
    """

    version: str = ""
    faults: tuple[KnownFault, ...] = ()

    def explaining(
        self, case: Case, outcome: Outcome, circumstance: str | None = None
    ) -> KnownFault | None:
        """Return the fault that explains why the case did not pass; None if there is none."""
        explanations = (
            fault for fault in self.faults if fault.explains(case, outcome, circumstance)
        )
        return next(explanations, None)

    def waive(self, case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
        """Return the verdict, or `waived` if a known fault explains the failure."""
        if verdict.status not in (Status.FAILED, Status.BROKEN):
            return verdict
        fault = self.explaining(case, outcome, verdict.circumstance)
        if fault is None:
            return verdict
        message = f"{fault.name}, in DirectML {self.version}: {fault.reason}"
        before = verdict.reason
        diagnostics = ""
        if isinstance(outcome, Breakdown):
            diagnostics = "\n".join(filter(None, (outcome.message, outcome.diagnostics)))
        differences = before.differences if before else ()
        reason = Reason(ReasonKind.KNOWN_FAULT, message, differences, diagnostics)
        return replace(verdict, status=Status.WAIVED, reason=reason)

    def harms_others(self, case: Case) -> bool:
        """Return whether the case must run in a process of its own."""
        return any(fault.alone and fault.concerns(case) for fault in self.faults)


NO_KNOWN_FAULTS: Final = KnownFaults()
"""For backends that are not DirectML."""


def known_faults(environment: Environment) -> KnownFaults:
    """Return the known faults of the DirectML that a backend runs.

    Raises:
        InvalidFilesError: the list cannot be read.
    """
    tested = tested_environment(environment)
    version = parse_version(tested["version"])
    if tested["backend"] != "directml" or version is None:
        return NO_KNOWN_FAULTS
    graph = tested["details"].get("compile") == _GRAPH
    faults = tuple(
        fault
        for fault in read_known_faults()
        if VersionRange(fault.first, fault.last).holds(version) and (graph or not fault.graph)
    )
    return KnownFaults(tested["version"], faults)


@cache
def read_known_faults(path: Path | None = None) -> tuple[KnownFault, ...]:
    """Return the list of DirectML's known faults.

    Args:
        path: another file than dmlconf's own.

    Raises:
        InvalidFilesError: the file cannot be read or does not fit its schema.
    """
    document = read_document(path or _file())
    problems = _problems(document)
    if problems:
        raise InvalidFilesError(problems)
    return tuple(map(_fault, document.data["faults"]))


def lint_known_faults(path: Path | None = None) -> list[Problem]:
    """Return every problem of the list.

    Args:
        path: another file than dmlconf's own.
    """
    try:
        return _problems(read_document(path or _file()))
    except InvalidFilesError as error:
        return list(error.problems)


def _file() -> Path:
    return schemas_directory() / "known-faults.yaml"


def _problems(document: Document) -> list[Problem]:
    problems = schema_problems(document, validator(bundled_schema("known-faults")), document.data)
    if problems:
        return problems
    names: set[str] = set()
    for index, data in enumerate(document.data["faults"]):
        where = ("faults", index)
        if data["name"] in names:
            problems.append(document.problem((*where, "name"), f"{data['name']} is listed twice"))
        names.add(data["name"])
        first, last = (parse_version(data["versions"][end]) or () for end in ("first", "last"))
        if first > last:
            message = f"{data['versions']['first']} is newer than {data['versions']['last']}"
            problems.append(document.problem((*where, "versions"), message))
        problems += _condition_problems(document, data, where)
        problems += _condition_problems(document, data.get("node", {}), (*where, "node"))
    return problems


def _condition_problems(
    document: Document, data: Mapping[str, Any], where: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield the problems of the operators and the condition of a fault or of a node."""
    for place, name in enumerate(data.get("operators", ())):
        try:
            operator_name(name)
        except LookupError as error:
            yield document.problem((*where, "operators", place), str(error))
    if "when" in data:
        try:
            Expression(data["when"])
        except ExpressionError as error:
            yield document.problem((*where, "when"), str(error))


def _fault(data: Mapping[str, Any]) -> KnownFault:
    first, last = (parse_version(data["versions"][end]) or () for end in ("first", "last"))
    return KnownFault(
        name=data["name"],
        reason=" ".join(data["reason"].split()),
        first=first,
        last=last,
        operators=frozenset(data["operators"]),
        outcome=data["outcome"],
        cases=frozenset(data["cases"]) if "cases" in data else None,
        when=Expression(data["when"]) if "when" in data else None,
        node=_node(data["node"]) if "node" in data else None,
        circumstance=data.get("circumstance"),
        graph=data.get("compile") == _GRAPH,
        alone=data.get("alone", False),
    )


def _node(data: Mapping[str, Any]) -> NodeCondition:
    return NodeCondition(frozenset(data["operators"]), Expression(data["when"]))
