"""Verify a certificate: judge every output in it again, and compare.

The verdicts in the certificate's log are not trusted. They are compared with verdicts on the stored
outputs by the cases, reference and rules of this dmlconf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import dmlconf
from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.certification.acceptance import (
    not_allowed_backend,
    notes_on_dates,
    notes_on_origin,
    notes_on_target,
    notes_on_waivers,
    share_text,
    too_many_waived,
    waived_by_sender,
)
from dmlconf.certification.certificate import Certificate, read_certificate
from dmlconf.certification.contents import read_log_member, read_statement_file, waivers_of_run
from dmlconf.certification.errors import RefusedError
from dmlconf.certification.findings import Finding, FindingKind, Verification, excused_cases
from dmlconf.certification.keys import PublicKey
from dmlconf.certification.logged import compared, wrong_log
from dmlconf.certification.plausibility import implausible
from dmlconf.certification.profiles import (
    Profile,
    profile_digest,
    profile_names,
    read_profile,
    refusal,
    required_cases,
    shortcomings,
    split_profile,
)
from dmlconf.certification.replay import OUTCOMES, OUTPUTS, Evidence, judge_again
from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.documents.problems import InvalidFilesError, printable
from dmlconf.documents.store import Entries
from dmlconf.excuses.substrate import NO_SUBSTRATE, read_substrate
from dmlconf.excuses.waiver_file import read_waivers
from dmlconf.excuses.waivers import NO_WAIVERS, Waiver, Waivers
from dmlconf.run_log.log import RunLog
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import ReasonKind, Verdict
from dmlconf.workers.execution import Limits, processes_that_pay
from dmlconf.workers.scratch import ScratchFolder

__all__ = ["Demand", "not_allowed", "verify"]

_Read = TypeVar("_Read")

_UNTESTED: Final = (ReasonKind.FEATURE_LEVEL, ReasonKind.DATA_TYPE)
"""Reasons of cases that did not run, since the device lacks what they need."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a verifier demands of a certificate.

    Attributes:
        keys: public keys that must have signed the certificate.
        challenge: the number with which it must have been made; None for any or none.
        profile: the profile that it must meet; None for any bundled one.
        substrate: the content of a file with accepted limits of a substrate; None accepts none.
        backends: names of backends that are accepted besides DirectML on an adapter.
        max_waived: how many cases the sender's waivers may excuse; None for what the profile says.
        store: keeps the contents of checked case files; None checks them again.
        limits: the processes that judge; None for as many as pay off.
    """

    suite_paths: Sequence[Path]
    keys: Sequence[PublicKey] = ()
    challenge: int | None = None
    profile: Profile | None = None
    substrate: bytes | None = None
    backends: Collection[str] = ()
    max_waived: WaivedLimit | None = None
    store: Entries | None = None
    limits: Limits | None = None


def verify(
    path: Path,
    demand: Demand,
    on_start: Callable[[int], Callable[[bool], None]] = lambda cases: lambda failed: None,
) -> Verification:
    """Return the result of verifying a certificate.

    Args:
        on_start: called with the number of cases before they are judged. It returns a function that
            is called after each case, with whether the case fails.

    Raises:
        MissingExtraError: it holds public keys, and `cryptography` cannot be imported.
        InvalidFilesError: a file of the suite is invalid.
        BackendError: a process could not be started, or a recording of the suite cannot be read.
        OSError: a temporary folder cannot be made, or written to.
    """
    try:
        certificate = read_certificate(path, demand.keys)
        with ScratchFolder() as folder:
            return _verification(path, certificate, demand, folder, on_start)
    except RefusedError as error:
        findings = [Finding(FindingKind.REFUSED, printable(reason)) for reason in error.reasons]
        findings[-1] = replace(findings[-1], cases=error.cases, unread=error.unread)
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
        str(path),
        (),
        predicate=predicate,
        signers=certificate.signers,
        statement=_statement(certificate, folder),
    )
    if certificate.lacking:
        return replace(known, findings=(_other_key(certificate),))
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
    figures = {verdict.case: verdict.execution.output_digests for verdict in log.verdicts}
    other_figures = 0
    for judged in judge_again(suite, plan, demand.suite_paths, evidence, limits):
        verdict = compared(judged)
        other_figures += (
            figures.pop(verdict.case, verdict.execution.output_digests)
            != verdict.execution.output_digests
        )
        verdicts[verdict.case] = verdict
        advance(verdict.status.fails_run)
    findings += _incomplete(plan, log, certificate, verdicts)
    findings += wrong_log(log, verdicts)
    findings += not_allowed(profile, verdicts.values())
    if too_many := too_many_waived(demand.max_waived or profile.max_waived, verdicts):
        findings.append(Finding(FindingKind.NOT_ALLOWED, too_many, waived_by_sender(verdicts)))
    findings += [
        Finding(FindingKind.INCOMPLETE, text)
        for text in shortcomings(profile, predicate.capabilities)
    ]
    findings += [
        Finding(FindingKind.ENVIRONMENT, printable(text))
        for text in implausible(predicate, log, datetime.now(UTC))
    ]
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


def _other_key(certificate: Certificate) -> Finding:
    lacking = ", ".join(f"{key.keyid} ({key.origin})" for key in certificate.lacking)
    if not certificate.signers:
        return Finding(
            FindingKind.UNSIGNED, printable(f"nobody has signed it; you require {lacking}")
        )
    signers = ", ".join(signer.keyid for signer in certificate.signers)
    return Finding(FindingKind.OTHER_KEY, printable(f"not by {lacking}, but by {signers}"))


def _statement(certificate: Certificate, folder: Path) -> Mapping[str, object]:
    content = certificate.members.get("statement.yaml")
    if content is None:
        return {}
    return _read(read_statement_file, "statement.yaml", content, folder)


def _read(read: Callable[[Path], _Read], name: str, content: bytes, folder: Path) -> _Read:
    """Write a member to a file in the folder, and return what `read` makes of the file."""
    path = folder / name
    path.write_bytes(content)
    try:
        return read(path)
    except InvalidFilesError as error:
        raise RefusedError(str(error).replace(str(path), name)) from error


def _profile(certificate: Certificate, demand: Demand) -> Profile | None:
    """Return the profile that a certificate names; None if it is not known here.

    A name in a certificate is never treated as a path.
    """
    name = certificate.predicate.profile
    if demand.profile is not None and demand.profile.name == name:
        return demand.profile
    base, _ = split_profile(name)
    if base not in profile_names():
        return None
    try:
        return read_profile(name)
    except LookupError:
        return None


def _other_versions(
    certificate: Certificate, suite: Suite, profile: Profile | None
) -> Iterator[Finding]:
    """Yield a `Finding` for another suite, catalogue or profile than the one here."""
    predicate = certificate.predicate
    kind = FindingKind.OTHER_VERSION
    again = f"verify it with the dmlconf {predicate.dmlconf} that made it; "
    if predicate.dmlconf == dmlconf.__version__:
        again += "this one has the same version but different files"
    else:
        again += f"this is dmlconf {dmlconf.__version__}"
    if predicate.suite != suite.digest:
        digests = f"{predicate.suite[:16]}, but the one here has {suite.digest[:16]}"
        paths = "give the PATHS of the cases that it was made from, or "
        text = f"it is for a suite with digest {digests}: {paths}{again}"
        yield Finding(kind, printable(text))
    if predicate.catalogue != catalogue_digest():
        yield Finding(kind, printable(f"it is for another catalogue of operators: {again}"))
    if profile is None:
        yield Finding(
            kind,
            printable(
                f"its profile {predicate.profile!r} is not known here: name "
                f"its file with --profile, or {again}"
            ),
        )
    elif profile_digest(profile) != predicate.profile_digest:
        yield Finding(kind, printable(f"its profile {profile.name} is a different one: {again}"))


def _other_demands(certificate: Certificate, demand: Demand) -> Iterator[Finding]:
    predicate = certificate.predicate
    if demand.challenge is not None and predicate.challenge != demand.challenge:
        challenge = (
            "no challenge" if predicate.challenge is None else f"challenge {predicate.challenge}"
        )
        message = f"it was made for {challenge}, not for challenge {demand.challenge}"
        yield Finding(FindingKind.OTHER_DEMAND, message)
    if demand.profile is not None and predicate.profile != demand.profile.name:
        message = f"it is for profile {predicate.profile}, not for {demand.profile.name}"
        yield Finding(FindingKind.OTHER_DEMAND, printable(message))
    backend = not_allowed_backend(predicate, demand.backends)
    if backend is not None:
        yield Finding(FindingKind.OTHER_BACKEND, printable(backend))
    enclosed = certificate.members.get("substrate.yaml")
    if enclosed is not None and enclosed != demand.substrate:
        message = "it excuses failures by limits of a substrate that you did not accept: "
        message += "read its substrate.yaml, and give the same file with --substrate"
        yield Finding(FindingKind.OTHER_DEMAND, message)


def _evidence(certificate: Certificate, log: RunLog, folder: Path) -> Evidence:
    """Return the evidence, and write the outcomes to a folder, where worker processes read them."""
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
        waivers = waivers_of_run(tuple(_placed(each, name) for each in file.waivers), log.header)
    return Evidence(
        folder=folder,
        environment=log.header.environment,
        capabilities=predicate.capabilities,
        challenge=predicate.challenge,
        replayed=predicate.source.recording is not None,
        substrate=substrate,
        waivers=waivers,
    )


def _placed(waiver: Waiver, name: str) -> Waiver:
    """Return a waiver whose location is the member's name, not a temporary file."""
    at = waiver.location
    return waiver if at is None else replace(waiver, location=replace(at, path=Path(name)))


def _incomplete(
    plan: Sequence[PlannedCase],
    log: RunLog,
    certificate: Certificate,
    verdicts: Mapping[str, Verdict],
) -> Iterator[Finding]:
    identifiers = [planned.identifier for planned in plan]
    logged = [verdict.case for verdict in log.verdicts]
    lines = certificate.outcomes.lines
    ran = {case for case, verdict in verdicts.items() if not _untested(verdict)}
    kind = FindingKind.INCOMPLETE
    for message, cases in (
        ("the log lacks cases of the profile", set(identifiers) - set(logged)),
        ("the log has cases that the profile lacks", set(logged) - set(identifiers)),
        ("outcomes are missing", ran - lines.keys()),
        ("there are outcomes of cases that must not run", lines.keys() - ran),
        ("cases were not judged", set(identifiers) - verdicts.keys()),
    ):
        if cases:
            yield Finding(kind, message, tuple(map(printable, sorted(cases))))
    if set(identifiers) == set(logged) and identifiers != logged:
        yield Finding(kind, "the log's cases are not in the order of the plan")
    assert log.footer is not None
    if not log.footer.complete:
        yield Finding(kind, "the log is of an incomplete run")


def _counted(cases: int) -> str:
    return "1 case was" if cases == 1 else f"{cases:,} cases were"


def _untested(verdict: Verdict) -> bool:
    return verdict.reason is not None and verdict.reason.kind in _UNTESTED


def not_allowed(profile: Profile, verdicts: Iterable[Verdict]) -> Iterator[Finding]:
    """Yield a `Finding` for each reason to refuse verdicts, and for too many declined cases."""
    by_reason: dict[str, list[Verdict]] = {}
    declined: list[str] = []
    number = 0
    for verdict in verdicts:
        number += 1
        if verdict.reason is not None and verdict.reason.kind is ReasonKind.NOT_EXPRESSIBLE:
            declined.append(verdict.case)
        reason = refusal(profile, verdict)
        if reason is not None:
            by_reason.setdefault(reason, []).append(verdict)
    for reason, refused in by_reason.items():
        first = refused[0].reason
        summary = f"{reason}; the first: {first.message}" if first else reason
        cases = tuple(verdict.case for verdict in refused)
        yield Finding(FindingKind.NOT_ALLOWED, printable(summary), cases)
    limit = profile.max_declined
    if limit is not None and limit.exceeded(len(declined), number):
        share = share_text(len(declined), number)
        message = f"the backend cannot express {share}, more than the {limit} of {profile.name}"
        yield Finding(FindingKind.NOT_ALLOWED, message, tuple(declined))


def _notes(
    certificate: Certificate,
    demand: Demand,
    log: RunLog,
    verdicts: Mapping[str, Verdict],
    waivers: Waivers,
    other_figures: int,
) -> Iterator[str]:
    predicate, now = certificate.predicate, datetime.now(UTC)
    yield from notes_on_origin(certificate, demands_keys=bool(demand.keys))
    yield from notes_on_target(verdicts)
    yield from notes_on_waivers(waivers.waivers, verdicts, log.header.started, now)
    yield from notes_on_dates(log, now)
    if demand.profile is None:
        yield f"the sender chose the profile {predicate.profile}: give yours with --profile"
    if predicate.challenge is None:
        yield "it was made without a challenge: it may be as old as the suite"
    elif demand.challenge is None:
        yield "whoever chose its challenge could try many: give yours with --challenge"
    reasons = [each.reason.kind for each in verdicts.values() if each.reason is not None]
    untested = reasons.count(ReasonKind.DATA_TYPE)
    lacking = frozenset(DataType) - predicate.capabilities.data_types
    if lacking:
        types = ", ".join(sorted(lacking))
        yield f"the device lacks {types}, so {_counted(untested)} not run"
    if log.header.environment["details"].get("half"):
        yield "FLOAT16 was computed in FLOAT16, and is judged accordingly"
    if other_figures:
        have = "1 case has" if other_figures == 1 else f"{other_figures:,} cases have"
        yield f"{have} different figures here than in the log"
