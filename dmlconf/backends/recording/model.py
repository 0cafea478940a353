"""The content of a recording: the outcome of each case, and the backend that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from dmlconf.backends.protocol import Capabilities, Outputs, Rejection
from dmlconf.backends.recording.digest import case_digest, outputs_problem
from dmlconf.cases.model import Case
from dmlconf.tensors.sample import sample_of

__all__ = [
    "SAMPLE",
    "SAMPLED_BYTES",
    "Entry",
    "Mismatch",
    "Recording",
    "entry_of",
    "sample_seed",
]

SAMPLED_BYTES: Final = 1 << 14
"""An output of this many bytes or more is kept as a digest and a sample of its elements."""

SAMPLE: Final = 512
"""Elements of a sample. If 1% of an output is wrong, 1 sample in 170 misses all wrong elements."""


class Mismatch(StrEnum):
    """Why a recording does not have the outcome of a case."""

    MISSING = "the recording has no such case"
    STALE = "the recording has a different desc or different inputs for this case; record it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """The outcome of one case.

    Attributes:
        digest: what `case_digest` returned when the case was recorded.
    """

    digest: str
    outcome: Outputs | Rejection


def entry_of(case: Case, outcome: Outputs | Rejection) -> Entry:
    """Return the entry of a case in a recording, with samples of large outputs."""
    digest = case_digest(case)
    if isinstance(outcome, Rejection):
        return Entry(digest, outcome)
    arrays, samples = dict(outcome.arrays), {}
    for name, array in outcome.arrays.items():
        if array.nbytes >= SAMPLED_BYTES:
            samples[name] = sample_of(arrays.pop(name), sample_seed(digest, name), SAMPLE)
    return Entry(digest, replace(outcome, arrays=arrays, samples=samples))


def sample_seed(digest: str, output: str) -> str:
    """Return the seed that selects the sampled elements of an output."""
    return f"{digest}/{output}"


@dataclass(frozen=True, slots=True)
class Recording:
    """A backend's outcomes on a suite.

    Attributes:
        dmlconf: version of dmlconf that made the recording.
        backend: the recorded backend as named on the command line.
        environment: the `Environment` as a mapping.
        entries: the entries, by the case's identifier.
    """

    dmlconf: str
    backend: str
    environment: Mapping[str, Any]
    capabilities: Capabilities
    entries: Mapping[str, Entry]

    def mismatch(self, case: Case) -> Mismatch | None:
        """Return why the recording does not have the case's outcome; None if it has it."""
        entry = self.entries.get(case.identifier)
        if entry is None:
            return Mismatch.MISSING
        if entry.digest != case_digest(case):
            return Mismatch.STALE
        outcome = entry.outcome
        if isinstance(outcome, Outputs) and outputs_problem(case, outcome) is not None:
            return Mismatch.STALE
        return None

    def find(self, case: Case) -> Outputs | Rejection | Mismatch:
        """Return the case's outcome, or why the recording does not have it."""
        return self.mismatch(case) or self.entries[case.identifier].outcome
