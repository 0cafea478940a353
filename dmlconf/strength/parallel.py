"""Measure figures of strength in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import RecordingAgainst, suite_expectations
from dmlconf.judging.judge import Against
from dmlconf.workers.mapping import in_processes

__all__ = ["Addable", "Measure", "measured_in_processes"]


class Addable(Protocol):
    """A tally of what cases notice, to which the tally of other cases can be added."""

    def add(self, later: Any, /) -> None:
        """Add the tally of later cases."""
        ...


_Result = TypeVar("_Result", bound=Addable)

Measure = Callable[[Sequence[PlannedCase], Against], _Result]
"""Builds cases and returns the tally of what they notice. The second argument gives the expected
outcome of cases that do not state all outputs."""


def measured_in_processes(
    measure: Measure[_Result],
    result: _Result,
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    *,
    jobs: int,
    chunk: int,
    advance: Callable[[], None] = lambda: None,
) -> tuple[_Result, Sequence[RecordingAgainst]]:
    """Return the tally of all cases, and the suite's recordings, which know the stale cases.

    Args:
        result: the tally to which the tallies of all cases are added.
        suite_paths: the files of the suite, whose recordings give expected values.
        jobs: how many processes; 1 measures in this one.
        chunk: the most cases that a process takes at a time; with one job, it takes one.
        advance: called for each case after its chunk.

    Raises:
        InvalidFilesError: a case cannot be built, or is not valid.
        BackendError: a recording of the suite cannot be read, or a process died.
    """
    _, recordings = suite_expectations(suite_paths)
    size = 1 if jobs == 1 else chunk
    chunks = [(measure, plan[start : start + size]) for start in range(0, len(plan), size)]
    with in_processes(jobs, _Worker.start, (suite_paths,)) as mapped:
        for (_, cases), (part, stale) in zip(chunks, mapped(_Worker.measure, chunks), strict=True):
            result.add(part)
            for recording, names in zip(recordings, stale, strict=True):
                recording.stale += names
            for _ in cases:
                advance()
    return result, recordings


class _Worker:
    """The state of a worker process."""

    against: Against
    recordings: Sequence[RecordingAgainst]

    @classmethod
    def start(cls, suite_paths: Sequence[Path]) -> None:
        cls.against, cls.recordings = suite_expectations(suite_paths)

    @classmethod
    def measure(
        cls, chunk: tuple[Measure[_Result], Sequence[PlannedCase]]
    ) -> tuple[_Result, list[list[str]]]:
        measure, cases = chunk
        for recording in cls.recordings:
            recording.stale.clear()
        result = measure(cases, cls.against)
        return result, [list(recording.stale) for recording in cls.recordings]
