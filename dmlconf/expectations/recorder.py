"""Make a recording: run cases on a backend, and keep their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import dmlconf
from dmlconf.backends import protocol
from dmlconf.backends.protocol import Breakdown, Capabilities, Outcome, Outputs
from dmlconf.backends.recording.digest import outputs_problem
from dmlconf.backends.recording.model import Entry, Recording, entry_of
from dmlconf.cases.model import Case
from dmlconf.engine.consumers import run_to_end
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Executed, Unsupported
from dmlconf.engine.session import OpenBackend, environment_record
from dmlconf.excuses.known_faults import KnownFaults
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate
from dmlconf.judging.undefined import without_excused_faults
from dmlconf.verdicts.verdict import ReasonKind, Verdict

__all__ = ["LeftOut", "record", "recording_head"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case that is not recorded.

    Attributes:
        broken: whether the backend broke down or misbehaved. False for all other reasons, and for
            known faults.
        reason: the kind of reason.
        message: the details, or the name of a known fault or of a substrate's limit.
    """

    case: str
    broken: bool
    reason: str
    message: str


def record(
    engine: Engine,
    substrate: Substrate = NO_SUBSTRATE,
    on_case: Callable[[bool], None] = lambda broken: None,
) -> tuple[Recording, list[LeftOut]]:
    """Run cases, and return the recording and the cases that it leaves out.

    Args:
        engine: an engine whose outcomes are not judged.
        substrate: the layers below DirectML; outcomes that their limits explain are not recorded.
        on_case: called after each case, with whether the case is left out as `broken`.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a worker process could not be started.
        KeyboardInterrupt: the run was interrupted.
    """
    backend = engine.backend
    entries: dict[str, Entry] = {}
    left_out: list[LeftOut] = []

    def keep(event: Event) -> None:
        match event:
            case Unsupported(verdict):
                left_out.append(_unsupported(verdict))
                on_case(False)
            case Executed(case, outcome):
                entry = _entry(case, outcome, substrate, backend.faults)
                if isinstance(entry, Entry):
                    entries[case.identifier] = entry
                else:
                    left_out.append(entry)
                on_case(isinstance(entry, LeftOut) and entry.broken)

    run_to_end(engine, keep)
    return replace(recording_head(backend), entries=entries), left_out


def recording_head(backend: OpenBackend) -> Recording:
    """Return a recording without entries, with a backend's feature level and data types."""
    capabilities = backend.capabilities
    return Recording(
        dmlconf=dmlconf.__version__,
        backend=str(backend.name),
        environment=environment_record(backend.environment),
        capabilities=Capabilities(capabilities.feature_level, capabilities.data_types),
        entries={},
    )


def _entry(
    case: Case, outcome: Outcome, substrate: Substrate, faults: KnownFaults
) -> Entry | LeftOut:
    known = faults.explaining(case, outcome)
    if known is not None:
        return LeftOut(case.identifier, False, ReasonKind.KNOWN_FAULT, known.name)
    if isinstance(outcome, protocol.Declined):
        return LeftOut(case.identifier, False, ReasonKind.NOT_EXPRESSIBLE, outcome.reason)
    if isinstance(outcome, Breakdown):
        return LeftOut(case.identifier, True, outcome.kind, outcome.message)
    for limit in substrate.limits:
        if limit.explains(case, outcome):
            return LeftOut(case.identifier, False, ReasonKind.SUBSTRATE, limit.name)
    if isinstance(outcome, Outputs):
        outcome = without_excused_faults(case, outcome)
        if outcome.faults:
            fault = outcome.faults[0]
            return LeftOut(case.identifier, True, fault.kind, fault.message)
        wrong = outputs_problem(case, outcome)
        if wrong is not None:
            return LeftOut(case.identifier, True, "other outputs than the desc has", wrong)
    return entry_of(case, outcome)


def _unsupported(verdict: Verdict) -> LeftOut:
    assert verdict.reason is not None
    return LeftOut(verdict.case, False, verdict.reason.kind, verdict.reason.message)
