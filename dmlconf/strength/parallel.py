"""Measures the strength of a suite in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from dmlconf.cases.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.runner.against import RecordingAgainst, suite_expectations
from dmlconf.runner.judge import Against
from dmlconf.strength.measure import Method, Strength, measure

__all__ = ["measure_in_processes"]

_CHUNK: Final = 100
"""Cases that a process takes at a time."""


def measure_in_processes(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    advance: Callable[[], None] = lambda: None,
    method: Method | None = None,
) -> tuple[Strength, Sequence[RecordingAgainst]]:
    """Return how strong the cases are, and the recordings that told what to expect.

    Args:
        plan: the cases, which are built in the processes.
        suite_paths: where the suite was loaded from.
        jobs: how many processes; 1 measures in this one.
        advance: is called after each case.
        method: what to try; everything where it is None.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a recording of the suite cannot be read.
    """
    method = method or Method()
    against, recordings = suite_expectations(suite_paths)
    if jobs == 1:
        return measure(map(valid_case, plan), against, advance, method), recordings
    strength = Strength()
    chunks = [plan[start : start + _CHUNK] for start in range(0, len(plan), _CHUNK)]
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), _Worker.start, (suite_paths, method)
    ) as pool:
        for chunk, (part, stale) in zip(chunks, pool.map(_Worker.measure, chunks), strict=True):
            strength.add(part)
            for recording, cases in zip(recordings, stale, strict=True):
                recording.stale += cases
            for _ in chunk:
                advance()
    return strength, recordings


class _Worker:
    """What a worker process keeps from chunk to chunk."""

    against: Against
    recordings: Sequence[RecordingAgainst]
    method: Method

    @classmethod
    def start(cls, suite_paths: Sequence[Path], method: Method) -> None:
        cls.against, cls.recordings = suite_expectations(suite_paths)
        cls.method = method

    @classmethod
    def measure(cls, chunk: Sequence[PlannedCase]) -> tuple[Strength, list[list[str]]]:
        for recording in cls.recordings:
            recording.stale.clear()
        strength = measure(map(valid_case, chunk), cls.against, method=cls.method)
        return strength, [list(recording.stale) for recording in cls.recordings]
