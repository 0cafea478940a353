"""What a recording holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dmlconf.backends.protocol import Capabilities, Outputs, Rejection
from dmlconf.backends.recording.digest import case_digest, outputs_fault
from dmlconf.cases.model import Case

__all__ = ["Entry", "Gap", "Recording"]


class Gap(StrEnum):
    """Why a recording cannot tell the outcome of a case."""

    MISSING = "the recording has no such case"
    STALE = "the recording has another desc or other inputs for this case; record it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """The outcome of one case.

    Attributes:
        digest: of the case as it was recorded.
        outcome: what the backend made of it.
    """

    digest: str
    outcome: Outputs | Rejection


@dataclass(frozen=True, slots=True)
class Recording:
    """What a backend made of a suite.

    Attributes:
        dmlconf: version of the dmlconf that recorded.
        backend: the recorded backend as named on the command line.
        environment: what it ran on, as a run log's header has it.
        capabilities: what it could run.
        entries: by the case's identifier.
    """

    dmlconf: str
    backend: str
    environment: Mapping[str, Any]
    capabilities: Capabilities
    entries: Mapping[str, Entry]

    def gap(self, case: Case) -> Gap | None:
        """Return why the recording cannot tell the case's outcome; None where it can."""
        entry = self.entries.get(case.identifier)
        if entry is None:
            return Gap.MISSING
        if entry.digest != case_digest(case):
            return Gap.STALE
        outcome = entry.outcome
        if isinstance(outcome, Outputs) and outputs_fault(case, outcome) is not None:
            return Gap.STALE
        return None

    def find(self, case: Case) -> Outputs | Rejection | Gap:
        """Return the case's outcome, or why the recording cannot tell it."""
        return self.gap(case) or self.entries[case.identifier].outcome
