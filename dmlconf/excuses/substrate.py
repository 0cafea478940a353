"""The limits of the layers below DirectML; cases that fail because of them are `unsupported`.

A substrate is everything below DirectML on a machine: Direct3D 12, the driver, the device. A file
that fits `schemas/substrate.schema.json` lists its known limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmlconf.backends.protocol import Outcome, Outputs, Rejection
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.loader import operator_name
from dmlconf.documents.problems import Problem, nearest
from dmlconf.documents.reader import Document
from dmlconf.documents.schema import checked_document
from dmlconf.excuses.condition_problems import condition_problems, operator_problems
from dmlconf.excuses.scope import Scope
from dmlconf.expressions import Expression
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import Reason, ReasonKind, Status, Verdict

__all__ = ["NO_SUBSTRATE", "Limit", "Substrate", "read_substrate"]


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that a substrate cannot do.

    Attributes:
        reason: why, as a sentence.
        stage: the call in which the limit shows; `Execute` for wrong values. For a single operator,
            CompileOperator includes CompileGraph.
        hresult: the name of the HRESULT; `S_OK` if the case runs, but fails.
        operators: names of affected operators; None for any.
        data_types: the affected data types, by the name of the tensor's field; None for any. Fields
            that a case lacks are ignored.
        cases: as in `Scope`; None for all.
        where: as in `Scope`; None for all.
        circumstance: the only circumstance under which the limit shows; None if any run shows it.
    """

    name: str
    reason: str
    stage: str
    hresult: str
    operators: frozenset[str] | None
    data_types: Mapping[str, frozenset[DataType]] | None
    cases: frozenset[str] | None
    where: Expression | None = None
    circumstance: str | None = None

    def explains(self, case: Case, outcome: Outcome, circumstance: str | None = None) -> bool:
        """Return whether the limit explains why a case did not pass.

        Args:
            circumstance: the circumstance under which the case failed; None for the plain run.
        """
        if self.circumstance is not None and self.circumstance != circumstance:
            return False
        if not self._shows(case, outcome):
            return False
        scope = Scope(self.operators, self.cases, self.where)
        return scope.covers(case) and self._concerns(case)

    def _shows(self, case: Case, outcome: Outcome) -> bool:
        if isinstance(outcome, Rejection):
            as_graph = self.stage == "CompileOperator" and not case.nodes
            stages = {self.stage, "CompileGraph"} if as_graph else {self.stage}
            return outcome.stage in stages and outcome.hresult == self.hresult
        return isinstance(outcome, Outputs) and self.hresult == "S_OK"

    def _concerns(self, case: Case) -> bool:
        if self.data_types is None:
            return True
        return all(
            tensor.DataType in self.data_types[field.name]
            for _, field, tensor in tensors_of(case.entry, case.desc)
            if field.name in self.data_types
        )


@dataclass(frozen=True, slots=True)
class Substrate:
    """The layers below DirectML: a description, and what they cannot do."""

    description: str
    limits: tuple[Limit, ...] = ()

    def excuse(self, case: Case, outcome: Outcome, verdict: Verdict) -> Verdict:
        """Return the verdict; it is `unsupported` if a limit explains the failure."""
        if verdict.status is not Status.FAILED:
            return verdict
        for limit in self.limits:
            if limit.explains(case, outcome, verdict.circumstance):
                reason = Reason(ReasonKind.SUBSTRATE, f"{limit.name}: {limit.reason}")
                return verdict.judged(status=Status.UNSUPPORTED, reason=reason)
        return verdict


NO_SUBSTRATE = Substrate("nothing known")


def read_substrate(path: Path) -> Substrate:
    """Read a file of a substrate's limits.

    Raises:
        InvalidFilesError: the file cannot be read, does not fit its schema, or has problems such
            as unknown names.
    """
    data = checked_document(path, "substrate", _problems).data
    return Substrate(data["substrate"], tuple(map(_limit, data["limits"])))


def _problems(document: Document) -> Iterator[Problem]:
    for index, data in enumerate(document.data["limits"]):
        for name, types in data["data_types"].items() if data["data_types"] != "any" else ():
            for at, each in enumerate(types):
                if each not in DataType.__members__:
                    location = ("limits", index, "data_types", name, at)
                    near = nearest(each, DataType.__members__)
                    hint = f"did you mean {near}?" if near else None
                    yield document.problem(location, f"there is no data type {each}", hint)
        operators = () if data["operators"] == "any" else data["operators"]
        yield from operator_problems(document, ("limits", index, "operators"), operators)
        key = ("limits", index, "where")
        condition, cases = data.get("where", "True"), data.get("cases", ())
        yield from condition_problems(document, key, condition, operators, cases)


def _limit(data: Mapping[str, Any]) -> Limit:
    types = None
    if data["data_types"] != "any":
        types = {name: frozenset(map(DataType, t)) for name, t in data["data_types"].items()}
    operators = data["operators"]
    names = None if operators == "any" else frozenset(map(operator_name, operators))
    return Limit(
        name=data["name"],
        reason=" ".join(data["reason"].split()),
        stage=data["stage"],
        hresult=data["hresult"],
        operators=names,
        data_types=types,
        cases=frozenset(data["cases"]) if "cases" in data else None,
        where=Expression(data["where"]) if "where" in data else None,
        circumstance=data.get("circumstance"),
    )
