"""Run and judge cases in worker processes, for backends that are trusted not to break down.

Each process also builds its cases, since building and judging take longer than running.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from dmlconf.backends.protocol import Backend, Breakdown
from dmlconf.backends.registry import BackendName
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import Expectations
from dmlconf.engine.session import from_process, in_process, judged
from dmlconf.excuses.waivers import NO_WAIVERS, Waivers
from dmlconf.judging.conclusion import NO_OPTIONS, JudgeOptions, broken_down
from dmlconf.judging.figure_cache import CachedRecord
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Limits
from dmlconf.workers.pool import BATCH, WorkerPool
from dmlconf.workers.process import Ran
from dmlconf.workers.worker import Raised, with_errors

__all__ = ["in_processes", "judged_in_processes"]

_Result = TypeVar("_Result")


def in_processes(
    plan: Sequence[PlannedCase],
    backend: BackendName,
    task: Callable[[Backend], Callable[[Sequence[PlannedCase]], Iterator[_Result | Raised]]],
    limits: Limits,
    verdict_of: Callable[[_Result], Verdict],
    waivers: Waivers = NO_WAIVERS,
) -> Generator[tuple[Verdict, Ran | None], None, None]:
    """Run a task on the cases of a plan; yield each verdict with the process in which its case ran.

    The process is None if the case did not run, since its operator had crashed too often.

    Args:
        task: takes the backend that the process created; returns a function that yields a result
            for each case of a batch.
        verdict_of: returns the verdict that a result of the task holds.
        waivers: what may excuse the loss of a process.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
    """
    jobs = min(limits.jobs, -(-len(plan) // BATCH))
    pool = WorkerPool(
        backend,
        jobs,
        limits.timeout,
        task,
        memory=limits.memory,
        second_tries=limits.second_tries,
    )
    with pool:
        pool.start()
        for planned, result in pool.run(iter(plan)):
            if isinstance(result, Breakdown):
                yield broken_down(valid_case(planned), result, waivers), pool.latest
            else:
                yield verdict_of(result), pool.latest


def judged_in_processes(
    plan: Sequence[PlannedCase],
    backend: BackendName,
    expected: Expectations,
    limits: Limits,
    options: JudgeOptions = NO_OPTIONS,
) -> Generator[Verdict, None, None]:
    """Run the plan, and yield each verdict as it is reached.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
    """

    def verdict_of(result: _Judged) -> Verdict:
        for recording, stale in zip(expected.recordings, result.stale, strict=True):
            recording.stale += stale
        if options.cache is not None:
            options.cache.unsaved += result.found
        return result.verdict

    task = _JudgeTask(backend, expected, options)
    verdicts = in_processes(plan, backend, task, limits, verdict_of, options.waivers)
    with closing(verdicts):
        for verdict, ran in verdicts:
            yield from_process(verdict, ran)


class _Judged(NamedTuple):
    """A verdict from a worker process, the stale cases of each recording, and new cache records."""

    verdict: Verdict
    stale: tuple[tuple[str, ...], ...]
    found: tuple[CachedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class _JudgeTask:
    backend: BackendName
    expected: Expectations
    options: JudgeOptions

    def __call__(
        self, backend: Backend
    ) -> Callable[[Sequence[PlannedCase]], Iterator[_Judged | Raised]]:
        ready = in_process(self.backend, backend)
        recordings, cache = self.expected.recordings, self.options.cache

        def results(batch: Sequence[PlannedCase]) -> Iterator[_Judged]:
            for verdict in judged(batch, ready, self.expected.against, self.options):
                stale = tuple(tuple(each.stale) for each in recordings)
                yield _Judged(verdict, stale, () if cache is None else cache.take())
                for each in recordings:
                    each.stale.clear()

        return with_errors(results)
