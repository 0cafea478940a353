"""Run cases in worker processes, so that a crash or a hang costs few cases their results.

- If a worker breaks down in a batch, the cases without an outcome run again, one at a time.
- If a worker breaks down on a single case after others, an earlier case may be the cause. So the
  case runs once more, alone in a fresh process, before it is blamed.
- After `REPEATS` cases of an operator died alone in the same way, the next single case that does is
  blamed at once.
- After `HOPELESS` crashes of an operator in a row, its cases that were to run one at a time, or
  alone in a fresh process, are not run.
- Without `second_tries`, the first case without an outcome is blamed at once, and the cases after
  it in its batch get no result.
- A worker that has grown too much is replaced between batches, since DirectML keeps every pipeline
  until its device closes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, Generic, TypeVar

from dmlconf.backends.circumstances import Exercise
from dmlconf.backends.errors import ProcessError
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind
from dmlconf.backends.registry import BackendName
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.workers.execution import WORKER_MEMORY
from dmlconf.workers.interrupts import Grace, deferred_interrupts, grace
from dmlconf.workers.memory import killed_for_memory
from dmlconf.workers.process import (
    START_SECONDS,
    LostProcess,
    Ran,
    WorkerProcess,
    wait_for_messages,
)
from dmlconf.workers.scratch import ScratchFolder
from dmlconf.workers.worker import Raised, Ready, Refused, Results, Task, outcomes

__all__ = ["WorkerPool"]

BATCH: Final = 16
"""The most cases that a worker gets at once."""

REPEATS: Final = 3

HOPELESS: Final = 16
"""A result ends a row of crashes; a hang does not."""

_START_ATTEMPTS: Final = 3
"""The run ends when this many workers in a row have failed to start."""

_RESTART_SECONDS: Final = 0.5
"""How long to wait after a failed start, since a device that was reset needs a moment."""


_Case = TypeVar("_Case", Case, PlannedCase, Case | Exercise)

_Reached = tuple[_Case, Any, Ran | None]
"""A case, its result, and the process in which it ran; None if it never ran."""


class _Queue(Generic[_Case]):
    """The cases that are still to run.

    Attributes:
        suspects: cases that run alone in a fresh process, since their worker broke down or they may
            harm others.
        singles: cases of batches that broke down, which run one at a time.
    """

    def __init__(self, cases: Iterator[_Case], alone: Callable[[_Case], bool]) -> None:
        self._cases: Iterator[_Case] = self._harmless(cases, alone)
        self._next: deque[_Case] = deque()
        self.suspects: deque[_Case] = deque()
        self.singles: deque[_Case] = deque()

    def _harmless(self, cases: Iterator[_Case], alone: Callable[[_Case], bool]) -> Iterator[_Case]:
        """Yield the cases that need not run `alone`; then make the others suspects."""
        harmful: list[_Case] = []
        for case in cases:
            if alone(case):
                harmful.append(case)
            else:
                yield case
        self.suspects.extend(harmful)

    def waiting(self) -> bool:
        """Return whether a case waits for a worker."""
        if not self._next:
            self._next.extend(islice(self._cases, 1))
        return bool(self.suspects or self.singles or self._next)

    def batch(self) -> list[_Case]:
        """Take the next cases."""
        if self.singles:
            return [self.singles.popleft()]
        batch = list(self._next)
        self._next.clear()
        return batch + list(islice(self._cases, BATCH - len(batch)))


class WorkerPool:
    """A context manager that gives cases to worker processes, each with a backend of its own.

    Attributes:
        started: how many processes were started.
        latest: where the case of the latest result ran; None if it never ran.
    """

    def __init__(
        self,
        backend: BackendName,
        workers: int,
        timeout: float,
        task: Task = outcomes,
        *,
        memory: int = WORKER_MEMORY,
        second_tries: bool = True,
    ) -> None:
        """Make the folder for the workers' files; workers start when they are needed.

        Args:
            workers: how many processes run side by side at most.
            timeout: as in `Limits`; likewise `memory` and `second_tries`.
            task: what a worker does with cases; it must be possible to pickle it.

        Raises:
            ProcessError: the folder for temporary files cannot be used.
        """
        self._backend = backend
        self._task = task
        self._size = workers
        self._timeout = timeout
        self._memory = memory
        self._second_tries = second_tries
        scratch: ScratchFolder | None = None
        try:
            with deferred_interrupts():
                scratch = ScratchFolder()
            self._scratch = scratch
        except OSError as error:
            raise ProcessError(
                f"{backend} needs a temporary folder for its processes: {error}. "
                "The environment variable TMPDIR (on Windows TEMP) names another one"
            ) from error
        except KeyboardInterrupt:
            # Nobody can close the pool yet.
            if scratch is not None:
                scratch.remove()
            raise
        self.started = 0
        self._failed_starts = 0
        self.latest: Ran | None = None
        self._workers: list[WorkerProcess] = []
        self._crashes: Counter[tuple[str, str]] = Counter()
        self._row: Counter[str] = Counter()
        self._lost: dict[str, list[LostProcess]] = {}

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, and remove their files."""
        for worker in self._workers:
            if worker.idle:
                worker.end()
            else:
                worker.kill()
        self._workers.clear()
        self._scratch.remove()

    def ready(self) -> Ready:
        """Start a worker, and wait until its backend is ready.

        Raises:
            BackendError: the backend cannot be used.
            ProcessError: the system lets no process start.
        """
        worker = self._start()
        wait_for_messages([worker])
        refusal = self._refusal(worker)
        if refusal is not None:
            raise BackendError(refusal)
        assert worker.ready is not None
        return worker.ready

    def start(self) -> None:
        """Start all workers at once; else `run` starts them one after the other.

        Raises:
            ProcessError: the system lets no process start.
        """
        while len(self._workers) < self._size:
            self._start()

    def _start(self) -> WorkerProcess:
        self.started += 1
        with deferred_interrupts(inherited=True):
            try:
                worker = WorkerProcess(
                    self._backend,
                    self._task,
                    Path(self._scratch.path),
                    self.started,
                    self._timeout,
                )
            except OSError as error:
                message = f"{self._backend}: no process could be started: {error}"
                raise ProcessError(message) from error
            self._workers.append(worker)
        return worker

    def _drop(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._workers.remove(worker)

    def _refusal(self, worker: WorkerProcess) -> str | None:
        """Receive a worker's first message; return why the worker cannot be used; else None."""
        message = worker.received()
        if isinstance(message, Ready):
            worker.ready, worker.idle = message, True
            self._failed_starts = 0
            return None
        if isinstance(message, Refused):
            reason = message.message
        elif not worker.dead and monotonic() >= worker.deadline:
            reason = f"{self._backend} was not ready after {START_SECONDS:.0f} seconds"
        else:
            reason = f"{self._backend}: its process {worker.ending()} at the start"
        self._drop(worker)
        return "\n".join(filter(None, (reason, worker.diagnostics())))

    def run(
        self, cases: Iterator[_Case], alone: Callable[[_Case], bool] = lambda case: False
    ) -> Iterator[tuple[_Case, Any]]:
        """Yield each case with its result: the task's, or a breakdown if it is blamed or not run.

        Cases come in the order of their results. Without `second_tries`, the cases after a
        breakdown in its batch are not yielded.

        Args:
            cases: read only as fast as workers need cases.
            alone: returns whether a case may harm others, so that it gets a process to itself.

        Raises:
            ProcessError: workers could not be started.
            KeyboardInterrupt: there was an interrupt; most results before it were yielded.
            Exception: the error that a worker sent as `Raised`.
        """
        with grace() as interrupt:
            for case, result, ran in self._run(_Queue(cases, alone), interrupt):
                lost = tuple(self._lost.pop(case.identifier, ()))
                self.latest = ran and replace(ran, lost=lost)
                yield case, result

    def _run(self, queue: _Queue[_Case], interrupt: Grace) -> Iterator[_Reached[_Case]]:
        while True:
            if interrupt.requested:
                yield from self._reached()
                interrupt.deliver()
            yield from self._given_up(queue)
            for worker in list(self._workers):
                if worker.idle:
                    yield from self._give_batch(worker, queue)
            busy = [worker for worker in self._workers if not worker.idle]
            if queue.waiting() and len(self._workers) < self._size:
                busy.append(self._start())
            if not busy:
                if not queue.waiting():
                    return
                continue
            for worker in wait_for_messages(busy, lambda: interrupt.requested):
                yield from self._receive(worker, queue)

    def _reached(self) -> Iterator[_Reached[Any]]:
        """Ask the workers to stop, and yield the results that they have reached."""
        asked = [worker for worker in self._workers if worker.batch and worker.stop()]
        while asked:
            for worker in wait_for_messages(asked):
                message = worker.received()
                if not isinstance(message, Results):
                    asked.remove(worker)  # The worker has sent all, or is dead or overdue.
                    continue
                for outcome in message.results:
                    if isinstance(outcome, Raised):
                        raise outcome.error
                    if isinstance(outcome, Breakdown) and outcome.device_lost:
                        # Without the interrupt, this case and those after it might run again.
                        asked.remove(worker)
                        break
                    yield worker.batch.popleft(), outcome, worker.next_result()

    def _given_up(self, queue: _Queue[_Case]) -> Iterator[_Reached[_Case]]:
        """Yield a breakdown for each suspect and each single case of a hopeless operator."""
        for waiting in (queue.suspects, queue.singles):
            for case in [waiting.popleft() for _ in range(len(waiting))]:
                if self._row[_operator(case)] < HOPELESS:
                    waiting.append(case)
                    continue
                message = f"not run: the {HOPELESS} cases of its operator before it crashed"
                yield case, Breakdown(BreakdownKind.CRASH, message), None

    def _give_batch(self, worker: WorkerProcess, queue: _Queue[_Case]) -> Iterator[_Reached[_Case]]:
        """Send the next batch, or end the worker if a fresh worker must run the batch.

        If the worker has died, the batch breaks down.
        """
        if not queue.waiting():
            return
        apart = worker.ran_suspect or (bool(queue.suspects) and not worker.fresh)
        if apart or worker.growth > self._memory:
            worker.end()
            self._workers.remove(worker)
            return
        worker.ran_suspect = bool(queue.suspects)
        batch = [queue.suspects.popleft()] if queue.suspects else queue.batch()
        if not worker.send(batch):
            yield from self._break_down(worker, queue, BreakdownKind.CRASH)

    def _receive(self, worker: WorkerProcess, queue: _Queue[_Case]) -> Iterator[_Reached[_Case]]:
        """Receive a worker's message, and send the next batch before results are yielded."""
        if worker.ready is None:
            self._admit(worker)
            return
        try:
            message = worker.message()
        except Exception:  # What arrives from a process that dies may be cut anywhere.
            yield from self._break_down(worker, queue, BreakdownKind.CRASH)
            return
        if message is None:
            kind = BreakdownKind.CRASH if worker.dead else BreakdownKind.HANG
            yield from self._break_down(worker, queue, kind)
            return
        worker.extend()
        yield from self._results(worker, queue, message)

    def _admit(self, worker: WorkerProcess) -> None:
        """Receive a worker's first message.

        Raises:
            ProcessError: `_START_ATTEMPTS` workers in a row have failed to start.
        """
        refusal = self._refusal(worker)
        if refusal is None:
            return
        self._failed_starts += 1
        if self._failed_starts >= _START_ATTEMPTS:
            raise ProcessError(f"{refusal}\n{_START_ATTEMPTS} processes in a row did not start")
        sleep(_RESTART_SECONDS)

    def _results(
        self, worker: WorkerProcess, queue: _Queue[_Case], message: Results
    ) -> Iterator[_Reached[_Case]]:
        received: list[_Reached[_Case]] = []
        error: Exception | None = None
        for outcome in message.results:
            if isinstance(outcome, Raised):
                error = outcome.error
                break
            if isinstance(outcome, Breakdown) and outcome.device_lost:
                received += self._break_down(worker, queue, outcome.kind, outcome)
                break
            case = worker.batch.popleft()
            self._row[_operator(case)] = 0
            received.append((case, outcome, worker.next_result()))
        worker.idle = message.last
        if message.last and worker.ready is not None:
            worker.growth = message.memory - worker.ready.memory
        if worker in self._workers and worker.idle:
            received += self._give_batch(worker, queue)
        yield from received
        if error is not None:
            raise error

    def _break_down(
        self,
        worker: WorkerProcess,
        queue: _Queue[_Case],
        kind: BreakdownKind,
        outcome: Breakdown | None = None,
    ) -> Iterator[_Reached[_Case]]:
        """End a worker that broke down; yield the blamed case's breakdown, or queue cases again.

        Args:
            outcome: the breakdown that the worker reported; None if it reported none.
        """
        ending = worker.ending() if kind is BreakdownKind.CRASH else ""
        self._drop(worker)
        if outcome is None:
            overdue = f"no result after {self._timeout:g} seconds, so its process was ended"
            died = f"its process {ending}{killed_for_memory(ending)}"
            message = overdue if kind is BreakdownKind.HANG else died
        else:
            message = outcome.message
        if not worker.batch:
            return
        suspect = worker.batch[0]
        crash = (_operator(suspect), ending)
        repeated = bool(ending) and worker.single and self._crashes[crash] >= REPEATS
        blamed = worker.alone or repeated or not self._second_tries
        for case, lost in worker.lost(kind, message, blamed=blamed):
            self._lost.setdefault(case.identifier, []).append(lost)
        if not blamed:
            later = queue.suspects if worker.single else queue.singles
            later.extend(worker.batch)
            return
        self._crashes[crash] += worker.alone
        self._row[crash[0]] += kind is BreakdownKind.CRASH
        worker.batch.clear()
        if outcome is None:
            outcome = Breakdown(kind, message, worker.diagnostics())
        elif not outcome.diagnostics:
            outcome = replace(outcome, diagnostics=worker.diagnostics())
        yield suspect, outcome, worker.next_result()


def _operator(case: Case | PlannedCase | Exercise) -> str:
    return case.identifier.partition("/")[0]
