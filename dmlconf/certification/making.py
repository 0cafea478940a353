"""Create a certificate: run the cases of a profile, store their outcomes, judge, and pack.

The stored outcomes are judged by the functions that verify certificates (`replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.protocol import Breakdown, Outputs
from dmlconf.backends.recording.model import Mismatch
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import PlannedCase
from dmlconf.certification.contents import device_environment, log_bytes
from dmlconf.certification.journal import Journal
from dmlconf.certification.outcomes import StoredOutcome, packed, stored_outcome
from dmlconf.certification.profiles import Profile, profile_digest
from dmlconf.certification.replay import OUTCOMES, OUTPUTS, Evidence, judge_again
from dmlconf.certification.statement import Predicate, Source
from dmlconf.engine.consumers import run_to_end
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Executed, Opened, Unsupported
from dmlconf.engine.session import OpenBackend
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate
from dmlconf.excuses.waivers import NO_WAIVERS, Waivers
from dmlconf.judging.undefined import without_excused_faults
from dmlconf.run_log.log import Header
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Limits

__all__ = [
    "LOG",
    "Order",
    "certificate_header",
    "journal_head",
    "judge_order",
    "members_of",
    "predicate_of",
    "run_order",
]

LOG: Final = "run.jsonl"
"""The member of a certificate that has the log of the run."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be certified: the cases, and what decides which verdicts they get.

    Attributes:
        challenge: the number that the verifier chose; None if there is none.
        files: members that go into the certificate as they are, by name.
    """

    profile: Profile
    suite: Suite
    suite_paths: Sequence[Path]
    plan: Sequence[PlannedCase]
    challenge: int | None = None
    substrate: Substrate = NO_SUBSTRATE
    waivers: Waivers = NO_WAIVERS
    files: Mapping[str, bytes] = field(default_factory=dict)


def journal_head(order: Order, header: Header) -> Mapping[str, Any]:
    """Return the head of the journal; only a certification with the same head can resume it."""
    return {
        "dmlconf": header.dmlconf,
        "suite": header.suite_digest,
        "catalogue": header.catalogue_digest,
        "profile": profile_digest(order.profile),
        "challenge": order.challenge,
        "backend": header.backend,
        "environment": header.environment,
    }


def run_order(
    order: Order, engine: Engine, journal: Journal, on_case: Callable[[bool], None]
) -> tuple[str, ...]:
    """Run the cases that the journal lacks, and store their outcomes.

    Args:
        engine: an engine for the order's plan, with a run that judges no outcomes.
        on_case: called once for every case, with whether its outcome is a breakdown.

    Returns:
        identifiers of the cases that a certified recording lacks, or has with another desc or other
            inputs.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
        CertificationError: the journal can no longer be written.
        KeyboardInterrupt: the run was interrupted; the journal has what came before.
    """
    missing: list[str] = []

    def keep(event: Event) -> None:
        match event:
            case Opened(total=total):  # `total` leaves out the cases that the journal has.
                for _ in range(len(order.plan) - (total or 0)):
                    on_case(False)
            case Unsupported():
                on_case(False)
            case Executed(case, outcome):
                if isinstance(outcome, Breakdown) and _lacks(engine.backend, outcome):
                    missing.append(case.identifier)
                else:
                    if isinstance(outcome, Outputs):
                        outcome = without_excused_faults(case, outcome)
                    journal.add(stored_outcome(case, outcome, order.challenge))
                on_case(isinstance(outcome, Breakdown))

    engine.leave_out(journal.outcomes)
    run_to_end(engine, keep)
    return tuple(missing)


def _lacks(backend: OpenBackend, outcome: Breakdown) -> bool:
    return backend.name.name == "recording" and outcome.message in set(map(str, Mismatch))


def judge_order(
    order: Order,
    header: Header,
    backend: OpenBackend,
    outcomes: Mapping[str, StoredOutcome],
    folder: Path,
    limits: Limits,
) -> tuple[Mapping[str, bytes], Iterator[Verdict]]:
    """Return the packed outcomes, and an iterator of the verdicts on the cases.

    Args:
        folder: where the outcomes are written, for the processes that judge.
    """
    ran = (case.identifier for case in order.plan if case.identifier in outcomes)
    text, outputs = packed(outcomes[identifier] for identifier in ran)
    members = {OUTCOMES: text, OUTPUTS: outputs}
    for name, content in members.items():
        (folder / name).write_bytes(content)
    evidence = Evidence(
        folder=folder,
        environment=header.environment,
        capabilities=backend.capabilities,
        challenge=order.challenge,
        replayed=backend.name.name == "recording",
        substrate=order.substrate,
        waivers=order.waivers,
    )
    return members, judge_again(order.suite, order.plan, order.suite_paths, evidence, limits)


def certificate_header(order: Order, backend: OpenBackend, header: Header) -> Header:
    """Return the header of the certificate's log, from the header of the run.

    It has no paths, and its environment has no details that differ between runs on one device. If a
    recording is certified, the environment is the recorded one.
    """
    recorded = header.environment["details"].get("recorded")
    environment = recorded if backend.name.name == "recording" else header.environment
    options: dict[str, Any] = {"profile": order.profile.name}
    if order.challenge is not None:
        options["challenge"] = order.challenge
    return Header(
        dmlconf=header.dmlconf,
        started=header.started,
        backend=backend.name.name if backend.name.name == "recording" else header.backend,
        against=header.against,
        environment=device_environment(environment),
        paths=(),
        suite_digest=header.suite_digest,
        catalogue_digest=header.catalogue_digest,
        selected=header.selected,
        options=options,
    )


def predicate_of(order: Order, backend: OpenBackend, header: Header) -> Predicate:
    """Return the predicate: what a certificate says about itself.

    Args:
        header: as `certificate_header` returns it.
    """
    replayed = backend.name.name == "recording"
    recording = str(backend.environment.details["sha256"]) if replayed else None
    return Predicate(
        dmlconf=header.dmlconf,
        suite=header.suite_digest,
        catalogue=header.catalogue_digest,
        profile=order.profile.name,
        profile_digest=profile_digest(order.profile),
        challenge=order.challenge,
        source=Source(header.backend, recording),
        environment=header.environment,
        capabilities=backend.capabilities,
    )


def members_of(
    order: Order,
    header: Header,
    verdicts: Mapping[str, Verdict],
    outcomes: Mapping[str, bytes],
    finished: str,
) -> Mapping[str, bytes]:
    """Return the members of a certificate that its statement covers.

    Args:
        header: as `certificate_header` returns it.
        outcomes: as `judge_order` returns them.
    """
    return {
        LOG: log_bytes(header, verdicts, order.plan, finished),
        **outcomes,
        **order.files,
    }
