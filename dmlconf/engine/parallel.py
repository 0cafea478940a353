"""Run and judge cases in worker processes, for backends that are trusted not to break down.

Each process also builds and judges its cases, since that takes longer than the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dmlconf.backends.protocol import Backend, Breakdown
from dmlconf.backends.registry import BackendName
from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import Expectations
from dmlconf.engine.session import from_process, in_process, judged, no_expectation
from dmlconf.judging.conclusion import NO_OPTIONS, JudgeOptions
from dmlconf.judging.figure_cache import CachedRecord
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Limits
from dmlconf.workers.pool import BATCH, WorkerPool
from dmlconf.workers.worker import Raised, with_errors

__all__ = ["judged_in_processes"]


def judged_in_processes(
    plan: Sequence[PlannedCase],
    backend: BackendName,
    expected: Expectations,
    limits: Limits,
    options: JudgeOptions = NO_OPTIONS,
) -> Generator[Verdict, None, None]:
    """Run the plan, and yield each verdict as it is reached.

    Args:
        backend: the backend; each process creates its own.
        options: what may excuse failures, and what runs besides each case.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
    """
    jobs = min(limits.jobs, -(-len(plan) // BATCH))
    task = _JudgeTask(backend, expected, options)
    with WorkerPool(backend, jobs, limits.timeout, task) as pool:
        pool.start()
        for planned, result in pool.run(iter(plan)):
            ran = pool.latest
            if isinstance(result, Breakdown):
                case = valid_case(planned)
                verdict = judge(case, result, no_expectation)
                yield from_process(options.waivers.applied(case, result, verdict), ran)
                continue
            for recording, stale in zip(expected.recordings, result.stale, strict=True):
                recording.stale += stale
            if options.cache is not None:
                options.cache.unsaved += result.found
            yield from_process(result.verdict, ran)


class _Judged(NamedTuple):
    """A verdict from a worker process, the stale cases of each recording, and new cache records."""

    verdict: Verdict
    stale: tuple[tuple[str, ...], ...]
    found: tuple[CachedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class _JudgeTask:
    """The task of a worker process: run a batch of cases on its backend, and judge them."""

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
