"""Measures the strength of a suite in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import RecordingAgainst, suite_expectations
from dmlconf.judging.judge import Against
from dmlconf.strength.expectations import ExpectationFigure, measure_expectations
from dmlconf.strength.graph_figure import GraphFigure, measure_graphs
from dmlconf.strength.measure import Method, Strength, measure
from dmlconf.strength.rewrite_figure import RewriteFigure, measure_rewrites
from dmlconf.workers.mapping import in_processes

__all__ = [
    "measure_expectations_in_processes",
    "measure_graphs_in_processes",
    "measure_in_processes",
    "measure_rewrites_in_processes",
]

_Result = TypeVar("_Result")

_CHUNK: Final = 100
"""Cases that a process takes at a time."""

_GRAPH_CHUNK: Final = 5
"""Graphs that a process takes at a time: those of 200 nodes take 20 s each."""


def measure_in_processes(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    advance: Callable[[], None] = lambda: None,
    method: Method | None = None,
) -> tuple[Strength, Sequence[RecordingAgainst]]:
    """Return how strong the cases are, and the recordings that gave expected values.

    Args:
        plan: the cases, which are built in the processes.
        suite_paths: where the suite was loaded from.
        jobs: how many processes; 1 measures in this one.
        advance: is called after each case.
        method: what to try; everything if it is None.

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
    results = _mapped(_Worker.measure, chunks, jobs, (suite_paths, method))
    for chunk, (part, stale) in zip(chunks, results, strict=True):
        strength.add(part)
        for recording, cases in zip(recordings, stale, strict=True):
            recording.stale += cases
        for _ in chunk:
            advance()
    return strength, recordings


def measure_graphs_in_processes(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> GraphFigure:
    """Return what the graphs among some cases notice.

    Args:
        plan: the cases, which are built in the processes.
        suite_paths: where the suite was loaded from.
        jobs: how many processes; 1 measures in this one.
        advance: is called after each case.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a recording of the suite cannot be read.
    """
    if jobs == 1:
        against, _ = suite_expectations(suite_paths)
        return measure_graphs(map(valid_case, plan), against, advance)
    figure = GraphFigure()
    chunks = [plan[start : start + _GRAPH_CHUNK] for start in range(0, len(plan), _GRAPH_CHUNK)]
    results = _mapped(_Worker.measure_graphs, chunks, jobs, (suite_paths, Method()))
    for chunk, part in zip(chunks, results, strict=True):
        figure.add(part)
        for _ in chunk:
            advance()
    return figure


def measure_rewrites_in_processes(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    advance: Callable[[], None] = lambda: None,
) -> RewriteFigure:
    """Return what the cases of rewrites among some cases prove.

    Args:
        plan: the cases, which are built in the processes.
        suite_paths: where the suite was loaded from.
        jobs: how many processes; 1 measures in this one.
        advance: is called after each case.

    Raises:
        InvalidFilesError: a case or its rewritten graph cannot be built.
        BackendError: a recording of the suite cannot be read.
    """
    if jobs == 1:
        against, _ = suite_expectations(suite_paths)
        return measure_rewrites(plan, against, advance)
    figure = RewriteFigure()
    chunks = [plan[start : start + _CHUNK] for start in range(0, len(plan), _CHUNK)]
    results = _mapped(_Worker.measure_rewrites, chunks, jobs, (suite_paths, Method()))
    for chunk, part in zip(chunks, results, strict=True):
        figure.add(part)
        for _ in chunk:
            advance()
    return figure


def measure_expectations_in_processes(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    advance: Callable[[], None] = lambda: None,
    seed: int = 0,
) -> ExpectationFigure:
    """Return what cases notice of their own expectations, spoiled.

    Args:
        plan: the cases, which are built in the processes.
        suite_paths: where the suite was loaded from.
        jobs: how many processes; 1 measures in this one.
        advance: is called after each case.
        seed: of the places.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a recording of the suite cannot be read.
    """
    if jobs == 1:
        against, _ = suite_expectations(suite_paths)
        return measure_expectations(map(valid_case, plan), against, advance, seed)
    figure = ExpectationFigure()
    chunks = [plan[start : start + _CHUNK] for start in range(0, len(plan), _CHUNK)]
    results = _mapped(_Worker.measure_expectations, chunks, jobs, (suite_paths, Method(seed=seed)))
    for chunk, part in zip(chunks, results, strict=True):
        figure.add(part)
        for _ in chunk:
            advance()
    return figure


def _mapped(
    function: Callable[[Sequence[PlannedCase]], _Result],
    chunks: Sequence[Sequence[PlannedCase]],
    jobs: int,
    state: tuple[Sequence[Path], Method],
) -> Iterator[_Result]:
    """Yield what a function of `_Worker` returns for each chunk, in their order."""
    with in_processes(jobs, _Worker.start, state) as mapped:
        yield from mapped(function, chunks)


class _Worker:
    """The state of a worker process between chunks."""

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

    @classmethod
    def measure_graphs(cls, chunk: Sequence[PlannedCase]) -> GraphFigure:
        return measure_graphs(map(valid_case, chunk), cls.against)

    @classmethod
    def measure_rewrites(cls, chunk: Sequence[PlannedCase]) -> RewriteFigure:
        return measure_rewrites(chunk, cls.against)

    @classmethod
    def measure_expectations(cls, chunk: Sequence[PlannedCase]) -> ExpectationFigure:
        return measure_expectations(map(valid_case, chunk), cls.against, seed=cls.method.seed)
