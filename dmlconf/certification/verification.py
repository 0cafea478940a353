"""Verify a certificate: judge every output in it again, and compare.

What its log says is never believed: it is compared with verdicts that are reached here, from the
outputs in the certificate, by this dmlconf's cases, reference and rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import dmlconf
from dmlconf.backends.subject import REFERENCE
from dmlconf.cases.loader import Suite, load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.certification.certificate import Certificate, read_certificate
from dmlconf.certification.contents import (
    read_log_member,
    read_statement_file,
    waivers_of_run,
)
from dmlconf.certification.errors import RefusedError
from dmlconf.certification.findings import Finding, FindingKind, Verification, excused_cases
from dmlconf.certification.keys import PublicKey
from dmlconf.certification.logged import compared, wrong_log
from dmlconf.certification.plausibility import implausible
from dmlconf.certification.profile_digest import profile_digest
from dmlconf.certification.profiles import (
    Profile,
    profile_names,
    read_profile,
    refusal,
    required_cases,
    shortcomings,
)
from dmlconf.certification.replay import (
    OUTCOMES,
    OUTPUTS,
    Evidence,
    judge_again,
)
from dmlconf.documents.problems import InvalidFilesError, printable
from dmlconf.documents.store import Entries
from dmlconf.runner.execution import Limits, processes_that_pay
from dmlconf.runner.log import RunLog
from dmlconf.runner.scratch import ScratchFolder
from dmlconf.runner.substrate import NO_SUBSTRATE, read_substrate
from dmlconf.runner.verdict import ReasonKind, Verdict
from dmlconf.runner.waiver_file import read_waivers
from dmlconf.runner.waivers import NO_WAIVERS, Waivers
from dmlconf.tensors.datatypes import DataType

__all__ = ["Demand", "not_allowed", "verify"]

_Read = TypeVar("_Read")

_UNTESTED: Final = (ReasonKind.FEATURE_LEVEL, ReasonKind.DATA_TYPE)
"""Why a case is not given to a device at all."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a verifier asks of a certificate.

    Attributes:
        suite_paths: where the suite is loaded from.
        keys: public keys that must have signed it.
        challenge: the number that it must have been made for; None for any.
        profile: the profile that it must be of; None for any bundled one.
        substrate: the content of a file of a substrate's limits that are accepted as an excuse;
            None accepts none.
        store: keeps what case files hold that were checked; None checks them again.
        limits: how many processes judge; None for as many as pay off.
    """

    suite_paths: Sequence[Path]
    keys: Sequence[PublicKey] = ()
    challenge: int | None = None
    profile: Profile | None = None
    substrate: bytes | None = None
    store: Entries | None = None
    limits: Limits | None = None


def verify(
    path: Path,
    demand: Demand,
    on_start: Callable[[int], Callable[[bool], None]] = lambda cases: lambda failed: None,
) -> Verification:
    """Return what is to be known of a certificate.

    Args:
        path: its file.
        demand: what is asked of it.
        on_start: is called with the number of cases before they are judged, and returns what is
            called after each, with whether it fails.

    Raises:
        MissingExtraError: it is signed, and `cryptography` is not installed.
        InvalidFilesError: a file of the suite is invalid.
        BackendError: a process could not be started.
    """
    try:
        certificate = read_certificate(path, demand.keys)
        with ScratchFolder() as folder:
            return _verification(path, certificate, demand, folder, on_start)
    except RefusedError as error:
        findings = [Finding(FindingKind.REFUSED, printable(reason)) for reason in error.reasons]
        findings[-1] = replace(findings[-1], cases=error.cases)
        return Verification(str(path), tuple(findings))


def _verification(
    path: Path,
    certificate: Certificate,
    demand: Demand,
    folder: Path,
    on_start: Callable[[int], Callable[[bool], None]],
) -> Verification:
    predicate = certificate.predicate
    known = Verification(
        str(path), (), predicate=predicate, signers=certificate.signers,
        statement=_statement(certificate, folder),
    )  # fmt: skip
    profile = _profile(certificate, demand)
    suite = load_suite(demand.suite_paths, store=demand.store, challenge=predicate.challenge)
    findings = [*_other_versions(certificate, suite, profile), *_other_demands(certificate, demand)]
    if profile is None or findings:
        return replace(known, findings=tuple(findings))
    plan = list(required_cases(profile, suite.plan()))
    log = read_log_member(certificate.members["run.jsonl"], folder, len(plan), compared)
    evidence = _evidence(certificate, log, folder)
    limits = demand.limits or Limits(processes_that_pay(len(plan)))
    advance = on_start(len(plan))
    verdicts: dict[str, Verdict] = {}
    figures = {verdict.case: verdict.figures for verdict in log.verdicts}
    other_figures = 0
    for judged in judge_again(suite, plan, demand.suite_paths, evidence, limits):
        verdict = compared(judged)
        other_figures += figures.pop(verdict.case, verdict.figures) != verdict.figures
        verdicts[verdict.case] = verdict
        advance(verdict.status.fails_run)
    findings += _incomplete(plan, log, certificate, verdicts)
    findings += wrong_log(log, verdicts)
    findings += not_allowed(profile, verdicts.values())
    findings += [Finding(FindingKind.INCOMPLETE, text)
                 for text in shortcomings(profile, predicate.capabilities)]  # fmt: skip
    findings += [Finding(FindingKind.ENVIRONMENT, printable(text))
                 for text in implausible(predicate, log, datetime.now(UTC))]  # fmt: skip
    footer = log.footer
    assert footer is not None
    notes = _notes(certificate, demand, log, verdicts, evidence.waivers, other_figures)
    return replace(
        known,
        findings=tuple(findings),
        notes=tuple(map(printable, notes)),
        run=(log.header.started, footer.finished),
        summary=dict(Counter(str(verdict.status) for verdict in verdicts.values())),
        waived=excused_cases(verdicts),
    )


def _statement(certificate: Certificate, folder: Path) -> Mapping[str, object]:
    content = certificate.members.get("statement.yaml")
    if content is None:
        return {}
    return _read(read_statement_file, "statement.yaml", content, folder)


def _read(read: Callable[[Path], _Read], name: str, content: bytes, folder: Path) -> _Read:
    """Read a member that is a file of its own.

    Raises:
        RefusedError: it is invalid.
    """
    path = folder / name
    path.write_bytes(content)
    try:
        return read(path)
    except InvalidFilesError as error:
        raise RefusedError(str(error).replace(str(path), name)) from error


def _profile(certificate: Certificate, demand: Demand) -> Profile | None:
    """Return the profile that a certificate names; None where it is not known here.

    A name in a certificate is never taken for a path.
    """
    name = certificate.predicate.profile
    if demand.profile is not None and demand.profile.name == name:
        return demand.profile
    if name.partition("+")[0] not in profile_names():
        return None
    try:
        return read_profile(name)
    except LookupError:
        return None


def _other_versions(
    certificate: Certificate, suite: Suite, profile: Profile | None
) -> Iterator[Finding]:
    """Yield what the certificate was made for and is not installed here."""
    predicate = certificate.predicate
    kind = FindingKind.OTHER_VERSION
    again = f"verify it with the dmlconf {predicate.dmlconf} that made it; "
    if predicate.dmlconf == dmlconf.__version__:
        again += "the one here has the same version and other files"
    else:
        again += f"this is dmlconf {dmlconf.__version__}"
    if predicate.suite != suite.digest:
        digests = f"{predicate.suite[:16]}, and the one here has {suite.digest[:16]}"
        yield Finding(kind, printable(f"it is for a suite of digest {digests}: {again}"))
    if predicate.catalogue != catalogue_digest():
        yield Finding(kind, printable(f"it is for another catalogue of operators: {again}"))
    if profile is None:
        yield Finding(kind, printable(f"its profile {predicate.profile!r} is not known here: name "
                                      f"its file with --profile, or {again}"))  # fmt: skip
    elif profile_digest(profile) != predicate.profile_digest:
        yield Finding(kind, printable(f"its profile {profile.name} is another one: {again}"))


def _other_demands(certificate: Certificate, demand: Demand) -> Iterator[Finding]:
    predicate = certificate.predicate
    if demand.challenge is not None and predicate.challenge != demand.challenge:
        challenge = (
            "no challenge" if predicate.challenge is None else f"challenge {predicate.challenge}"
        )
        message = f"it was made for {challenge}, not for challenge {demand.challenge}"
        yield Finding(FindingKind.OTHER_DEMAND, message)
    if demand.profile is not None and predicate.profile != demand.profile.name:
        message = f"it is of profile {predicate.profile}, not of {demand.profile.name}"
        yield Finding(FindingKind.OTHER_DEMAND, printable(message))
    enclosed = certificate.members.get("substrate.yaml")
    if enclosed is not None and enclosed != demand.substrate:
        message = "it excuses failures by limits of a substrate that you did not accept: "
        message += "read substrate.yaml in it, and name the same file with --substrate"
        yield Finding(FindingKind.OTHER_DEMAND, message)


def _evidence(certificate: Certificate, log: RunLog, folder: Path) -> Evidence:
    """Return what verdicts follow from; the folder holds the outcomes for the processes.

    Raises:
        RefusedError: a file that came with the certificate is invalid.
    """
    members, predicate = certificate.members, certificate.predicate
    for name in (OUTCOMES, OUTPUTS):
        (folder / name).write_bytes(members[name])
    substrate, waivers = NO_SUBSTRATE, NO_WAIVERS
    if "substrate.yaml" in members:
        name = "substrate.yaml"
        substrate = _read(read_substrate, name, members[name], folder)
    if "waivers.yaml" in members:
        name = "waivers.yaml"
        file = _read(read_waivers, name, members[name], folder)
        waivers = waivers_of_run(file.waivers, log.header)
    return Evidence(
        folder=folder,
        environment=log.header.environment,
        capabilities=predicate.capabilities,
        challenge=predicate.challenge,
        replayed=predicate.source.recording is not None,
        substrate=substrate,
        waivers=waivers,
    )


def _incomplete(
    plan: Sequence[PlannedCase],
    log: RunLog,
    certificate: Certificate,
    verdicts: Mapping[str, Verdict],
) -> Iterator[Finding]:
    """Yield which cases are missing, there beside the profile's, or out of order."""
    identifiers = [planned.identifier for planned in plan]
    logged = [verdict.case for verdict in log.verdicts]
    lines = certificate.outcomes.lines
    ran = {case for case, verdict in verdicts.items() if not _untested(verdict)}
    kind = FindingKind.INCOMPLETE
    for message, cases in (
        ("the log lacks cases of the profile", set(identifiers) - set(logged)),
        ("the log has cases that the profile has not", set(logged) - set(identifiers)),
        ("outcomes are missing", ran - lines.keys()),
        ("there are outcomes of cases that are not to run", lines.keys() - ran),
        ("cases were not judged", set(identifiers) - verdicts.keys()),
    ):
        if cases:
            yield Finding(kind, message, tuple(map(printable, sorted(cases))))
    if set(identifiers) == set(logged) and identifiers != logged:
        yield Finding(kind, "the log has the cases in another order than the plan")
    if log.footer is None or not log.footer.complete:
        yield Finding(kind, "the log is of a run that was not completed")


def _untested(verdict: Verdict) -> bool:
    return verdict.reason is not None and verdict.reason.kind in _UNTESTED


def not_allowed(profile: Profile, verdicts: Iterable[Verdict]) -> Iterator[Finding]:
    """Yield the cases whose verdicts cannot stand in a certificate of a profile."""
    by_reason: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        reason = refusal(profile, verdict)
        if reason is not None:
            by_reason.setdefault(reason, []).append(verdict)
    for reason, refused in by_reason.items():
        first = refused[0].reason
        summary = f"{reason}; the first: {first.message}" if first else reason
        cases = tuple(verdict.case for verdict in refused)
        yield Finding(FindingKind.NOT_ALLOWED, printable(summary), cases)


def _notes(
    certificate: Certificate,
    demand: Demand,
    log: RunLog,
    verdicts: Mapping[str, Verdict],
    waivers: Waivers,
    other_figures: int,
) -> Iterator[str]:
    """Yield what whoever accepts the certificate must know."""
    predicate = certificate.predicate
    if not certificate.signers:
        yield "it is not signed: nobody vouches for where it is from"
    elif not any(signer.trusted for signer in certificate.signers):
        yield ("it is signed with the keys that came with it: name the vendor's key with --key, "
               "else nobody vouches for whose they are")  # fmt: skip
    if demand.profile is None:
        yield f"the sender chose the profile {predicate.profile}: name yours with --profile"
    if predicate.challenge is None:
        yield "it was made without a challenge: it may be as old as the suite"
    elif demand.challenge is None:
        yield "whoever chose its challenge could try many: name yours with --challenge"
    if predicate.environment["backend"] == REFERENCE:
        yield f"it is of {REFERENCE}, which is dmlconf's own reference, and of no device"
    if predicate.source.recording is not None:
        yield "it is of a recording that was made before, not of a run"
        if known := certificate.outcomes.known_places:
            yield (f"of {known:,} large outputs it has a sample, at places that could be known "
                   "before the run")  # fmt: skip
    if predicate.dmlconf != dmlconf.__version__:
        yield f"dmlconf {predicate.dmlconf} made it; this is {dmlconf.__version__}, same suite"
    lacking = frozenset(DataType) - predicate.capabilities.data_types
    if lacking:
        untested = sum(map(_untested, verdicts.values()))
        types = ", ".join(sorted(lacking))
        yield f"the device lacks {types}, so {untested:,} cases were not run"
    if log.header.environment["details"].get("half"):
        yield "FLOAT16 was computed in FLOAT16, and is judged so"
    expired = [waiver for waiver in waivers.waivers if waiver.until < datetime.now(UTC).date()]
    for waiver in expired:
        yield f"the waiver {waiver.name} held on the day of the run, and ended on {waiver.until}"
    if other_figures:
        yield f"{other_figures:,} cases have other figures here than in the log"
