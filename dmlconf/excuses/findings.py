"""Findings: results of runtimes other than DirectML that contradict their own specification.

A finding explains a failure, but excuses nothing: the case keeps its status, and its reason names
the finding. The findings are in `schemas/findings/*.yaml`, and docs/findings.md shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import Environment, Outcome, Outputs
from dmlconf.backends.subject import REFERENCE, tested_environment
from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import operator_name
from dmlconf.documents.reader import read_document
from dmlconf.excuses.condition_problems import require_operators
from dmlconf.excuses.deviations import Deviation, Deviations, formula_of, patched
from dmlconf.excuses.scope import Facts, Scope
from dmlconf.expressions import Expression
from dmlconf.resources import schemas_directory
from dmlconf.verdicts.verdict import OF_VALUES, ReasonKind, Verdict

__all__ = ["NO_FINDINGS", "Finding", "Findings", "all_findings", "findings_of", "read_findings"]

_NO_OTHER_RUNTIME: Final = frozenset({"directml", REFERENCE})


@dataclass(frozen=True, slots=True)
class Finding:
    """A known mistake of a runtime.

    Attributes:
        wrong: the finding's name and cases, and for wrong values the elements or the formula.
        title: what the runtime does.
        fails: the kind of the failures.
        message: a regular expression that is searched for in the failure's message.
        example: the identifier of a small case that fails in this way.
        code: a few lines that show the mistake through the runtime's own API.
        instructions: instructions of the processor, such as AVX-512, without which the runtime is
            right; empty if any processor shows the mistake.
    """

    wrong: Deviation
    title: str
    fails: ReasonKind
    message: re.Pattern[str]
    example: str
    code: str
    instructions: str = ""

    @property
    def name(self) -> str:
        """The name that verdicts give."""
        return self.wrong.name


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings in a runtime.

    Attributes:
        runtime: the backend's name; empty in NO_FINDINGS.
        version: the runtime's version in which the findings were seen.
        details: entries that the environment's details must have.
        title: the runtime's name in texts.
        runs: the runs that gave the findings, and how many cases had each status.
        note: further text on `runs` for the page of findings.
    """

    runtime: str = ""
    version: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    findings: tuple[Finding, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    note: str = ""

    def explain(
        self,
        case: Case,
        outcome: Outcome,
        verdict: Verdict,
        deviations: Deviations,
        judge: Callable[[Case, Outcome], Verdict],
    ) -> Verdict:
        """Return the verdict; if findings explain the whole failure, its reason names them.

        Args:
            deviations: the target's deviations, which may explain some of the wrong elements.
        """
        reason = verdict.reason
        if not self.findings or not verdict.status.fails_run or reason is None:
            return verdict
        facts = Facts(case)
        kind = ReasonKind.WRONG_VALUES if reason.kind in OF_VALUES else reason.kind
        covering = [
            each
            for each in self.findings
            if each.fails is kind
            and each.message.search(reason.message)
            and each.wrong.scope.covers(case, facts)
        ]
        if not covering:
            return verdict
        if kind is ReasonKind.WRONG_VALUES:
            covering = _of_values(case, outcome, covering, deviations, judge)
        else:
            covering = covering[:1]
        names = " and ".join(f"{each.name} ({each.title})" for each in covering)
        message = f"known finding {names}: {reason.message}" if names else reason.message
        return verdict.judged(reason=replace(reason, message=message))


NO_FINDINGS: Final = Findings()


def _of_values(
    case: Case,
    outcome: Outcome,
    covering: list[Finding],
    deviations: Deviations,
    judge: Callable[[Case, Outcome], Verdict],
) -> list[Finding]:
    """Return the findings that, with deviations, explain the whole failure; none otherwise."""
    if not isinstance(outcome, Outputs):
        return []
    together = [*deviations.covering(case), *(each.wrong for each in covering)]
    used, without = patched(case, outcome, together)
    if judge(case, without).status.fails_run:
        return []
    return [each for each in covering if each.wrong in used]


def findings_of(environment: Environment | Mapping[str, Any]) -> Findings:
    """Return the findings in an environment's runtime, whatever its version.

    Raises:
        InvalidFilesError: as for `read_findings`.
    """
    tested = tested_environment(environment)
    if tested["backend"] in _NO_OTHER_RUNTIME:
        return NO_FINDINGS  # No file is read for these.
    for each in all_findings():
        if each.runtime == tested["backend"] and all(
            tested["details"].get(name) == value for name, value in each.details.items()
        ):
            return each
    return NO_FINDINGS


@cache
def all_findings() -> tuple[Findings, ...]:
    """Return the findings of each runtime, in the order of their files.

    Raises:
        InvalidFilesError: as for `read_findings`.
    """
    return tuple(map(read_findings, sorted((schemas_directory() / "findings").glob("*.yaml"))))


def read_findings(path: Path) -> Findings:
    """Return the findings in a file.

    Raises:
        InvalidFilesError: the file cannot be read, or names unknown operators.
    """
    document = read_document(path)
    data = document.data
    return Findings(
        runtime=data["runtime"],
        version=data["version"],
        details=data.get("details", {}),
        title=data["title"],
        findings=tuple(map(_finding, require_operators(document, "findings"))),
        runs=tuple(data.get("runs", ())),
        note=data.get("note", ""),
    )


def _finding(data: Mapping[str, Any]) -> Finding:
    scope = Scope(
        operators=frozenset(map(operator_name, data["operators"])) if "operators" in data else None,
        cases=frozenset(data["cases"]) if "cases" in data else None,
        where=Expression(data["where"]) if "where" in data else None,
    )
    elements = data.get("elements", ())
    wrong = Deviation(
        name=data["name"],
        scope=scope,
        elements=(elements,) if isinstance(elements, str) else tuple(elements),
        arguments=data.get("arguments", {}),
        formula=formula_of(data),
    )
    return Finding(
        wrong=wrong,
        title=data["title"],
        fails=ReasonKind(data["fails"]),
        message=re.compile(data.get("message", "")),
        example=data["example"],
        code=data["code"],
        instructions=data.get("instructions", ""),
    )
