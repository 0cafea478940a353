"""The reasons why a certificate does not hold, and the result of a verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from dmlconf.certification.certificate import Signer
from dmlconf.certification.statement import Predicate
from dmlconf.documents.problems import printable
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

__all__ = ["Finding", "FindingKind", "Result", "Verification", "excused_cases"]


class FindingKind(StrEnum):
    """Why a certificate does not hold."""

    REFUSED = "not a certificate, or changed after it was made"
    OTHER_KEY = "signed, but not with this key"
    UNSIGNED = "not signed"
    OTHER_BACKEND = "of a backend that you did not allow"
    OTHER_VERSION = "made for another version"
    OTHER_DEMAND = "made for another demand"
    INCOMPLETE = "incomplete"
    WRONG_LOG = "the log says what the outputs do not"
    NOT_ALLOWED = "verdicts that the profile does not allow"
    ENVIRONMENT = "implausible environment"

    @property
    def words(self) -> str:
        """The kind in words for people; the value is part of JSON reports and must not change."""
        if self is FindingKind.OTHER_DEMAND:
            return "not what you ask for"
        return self.value


class Result(StrEnum):
    """The result of a verification."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why a certificate does not hold.

    Attributes:
        cases: identifiers of the cases that it concerns.
        unread: whether the file could not be read.
    """

    kind: FindingKind
    message: str
    cases: tuple[str, ...] = ()
    unread: bool = False


_REFUSING: Final = (FindingKind.REFUSED, FindingKind.OTHER_KEY, FindingKind.UNSIGNED)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verifier knows about a certificate.

    Attributes:
        findings: why the certificate does not hold; empty if it holds.
        notes: what anyone who accepts it must know.
        predicate: what the certificate says about itself; None if a `Finding` is `REFUSED`.
        statement: what the vendor says.
        run: when the run began and ended, as its log says; None if the outputs were not judged.
        summary: number of verdicts by status, all reached by the verifier.
        waived: what `excused_cases` returns for the verifier's verdicts.
    """

    file: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    predicate: Predicate | None = None
    signers: tuple[Signer, ...] = ()
    statement: Mapping[str, Any] = field(default_factory=dict)
    run: tuple[str, str] | None = None
    summary: Mapping[str, int] = field(default_factory=dict)
    waived: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def result(self) -> Result:
        """The result that follows from `findings`."""
        if any(finding.kind in _REFUSING for finding in self.findings):
            return Result.REFUSED
        return Result.DOES_NOT_HOLD if self.findings else Result.HOLDS

    @property
    def unread(self) -> bool:
        """Whether the file could not be read."""
        return any(finding.unread for finding in self.findings)


def excused_cases(verdicts: Mapping[str, Verdict]) -> Mapping[str, tuple[str, ...]]:
    """Return the cases that are waived or that the substrate excuses, by excuse: `waiver: NAME`."""
    excused: dict[str, list[str]] = {}
    for verdict in verdicts.values():
        reason = verdict.reason
        if reason is None:
            continue
        if verdict.status is Status.WAIVED or reason.kind is ReasonKind.SUBSTRATE:
            name = f"{reason.kind}: {reason.message.partition(':')[0]}"
            excused.setdefault(printable(name), []).append(verdict.case)
    return {name: tuple(cases) for name, cases in sorted(excused.items())}
