"""Worker processes that may crash or hang, so that each such case costs only its own verdict.

A case whose worker dies is tried once more, alone in a fresh process, before it is blamed: what
ran before it or together with it may be at fault. A backend may run a batch as one, so any case of
it without an outcome may have killed the worker: these are no batch again, but run one at a time.
Where several cases of an operator died alike by themselves, the next one of it that dies so is
blamed at once. Where many in a row did, the others of their batches are not run: to start a process
takes a second or more, and an operator may have hundreds of cases.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from dmlconf.backends.exits import how_it_ended
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind
from dmlconf.backends.registry import BackendName
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.runner.worker import Raised, Ready, Refused, Task, outcomes, work

__all__ = ["WorkerPool"]

BATCH: Final = 32
"""Cases that a worker is given at once."""

START_SECONDS: Final = 120.0
"""How long a worker may take until its backend is ready."""

REPEATS: Final = 3
"""So many cases of an operator that die alike by themselves are believed of the next one."""

HOPELESS: Final = 16
"""After so many crashes of an operator in a row, cases of it that would run alone are not run."""

MOST_DIAGNOSTICS: Final = 8192
"""Bytes of a worker's standard error that are kept with a verdict, from the end."""


_Case = TypeVar("_Case", Case, PlannedCase)


class _Worker:
    """One process, and the batch that it is at."""

    def __init__(self, backend: BackendName, task: Task, directory: Path, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.diagnostics = directory / f"worker-{number}.stderr"
        self.diagnostics.touch()
        self.connection, theirs = context.Pipe()
        arguments = (theirs, backend, task, self.diagnostics)
        self.process: SpawnProcess = context.Process(target=work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.ready: Ready | None = None
        self.batch: deque[Any] = deque()
        self.single = False
        self.alone = False
        self.fresh = True
        self.ran_suspect = False
        self.deadline = monotonic() + START_SECONDS

    def give(self, cases: Sequence[Any], timeout: float) -> None:
        self.batch = deque(cases)
        self.single = len(cases) == 1
        self.alone = self.fresh and self.single
        self.fresh = False
        self.deadline = monotonic() + timeout
        self.connection.send(cases)

    def end(self) -> None:
        """Ask the worker to end, and end it if it does not."""
        with suppress(OSError):
            self.connection.send(None)
        self.process.join(1)
        self.kill()

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()

    def said(self) -> str:
        """Return the end of what the process wrote to standard error."""
        content = self.diagnostics.read_bytes()[-MOST_DIAGNOSTICS:]
        return content.decode("utf-8", "replace").strip()


class _Queue(Generic[_Case]):
    """The cases that are still to run.

    Attributes:
        suspects: cases to be tried once, alone in a fresh process: those whose worker broke down,
            and those that may harm others.
        singles: cases of batches that broke down, to be tried one at a time.
    """

    def __init__(self, cases: Iterator[_Case], alone: Callable[[_Case], bool]) -> None:
        self._cases: Iterator[_Case] = self._harmless(cases, alone)
        self._next: deque[_Case] = deque()
        self.suspects: deque[_Case] = deque()
        self.singles: deque[_Case] = deque()

    def _harmless(self, cases: Iterator[_Case], alone: Callable[[_Case], bool]) -> Iterator[_Case]:
        for case in cases:
            if alone(case):
                self.suspects.append(case)
            else:
                yield case

    def waiting(self) -> bool:
        """Tell whether any case is still to be given to a worker."""
        if not self._next:
            self._next.extend(islice(self._cases, 1))
        return bool(self.suspects or self.singles or self._next)

    def batch(self) -> list[_Case]:
        """Take the next cases: a single one, or at most a batch of them."""
        if self.singles:
            return [self.singles.popleft()]
        taken = list(self._next)
        self._next.clear()
        return taken + list(islice(self._cases, BATCH - len(taken)))


class WorkerPool:
    """Gives cases to worker processes, each with a backend of its own.

    Use as a context manager; leaving it ends every worker.

    Attributes:
        started: how many processes were started.
    """

    def __init__(
        self, backend: BackendName, workers: int, timeout: float, task: Task = outcomes
    ) -> None:
        """Prepare; workers are started as they are needed.

        Args:
            backend: the backend.
            workers: how many processes run side by side.
            timeout: seconds that one case may take.
            task: what a worker does with cases; it must be possible to pickle it.
        """
        self._backend = backend
        self._task = task
        self._size = workers
        self._timeout = timeout
        with _without_interrupts():
            self._directory = tempfile.TemporaryDirectory(prefix="dmlconf-")
        self.started = 0
        self._workers: list[_Worker] = []
        self._crashes: Counter[tuple[str, str]] = Counter()
        self._row: Counter[str] = Counter()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every worker, and remove what they left."""
        for worker in self._workers:
            if worker.batch or worker.ready is None:
                worker.kill()
            else:
                worker.end()
        self._workers.clear()
        self._directory.cleanup()

    def ready(self) -> Ready:
        """Wait until one worker's backend can be used, and return what it says of itself.

        Raises:
            BackendError: it cannot be used.
        """
        worker = self._start()
        if not worker.connection.poll(START_SECONDS):
            self._drop(worker)
            raise BackendError(f"{self._backend} was not ready after {START_SECONDS:.0f} seconds")
        self._greet(worker)
        assert worker.ready is not None
        return worker.ready

    def start(self) -> None:
        """Start all workers at once; else `run` starts one more whenever it hears of one."""
        while len(self._workers) < self._size:
            self._start()

    def _start(self) -> _Worker:
        self.started += 1
        with _without_interrupts():
            worker = _Worker(self._backend, self._task, Path(self._directory.name), self.started)
            self._workers.append(worker)
        return worker

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        self._workers.remove(worker)

    def _greet(self, worker: _Worker) -> None:
        """Take a worker's first message."""
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            message = Refused(
                f"{self._backend}: its process {how_it_ended(worker.process)} at the start"
            )
        if isinstance(message, Refused):
            said = worker.said()
            self._drop(worker)
            raise BackendError("\n".join(filter(None, (message.message, said))))
        worker.ready = message

    def run(
        self, cases: Iterator[_Case], alone: Callable[[_Case], bool] = lambda case: False
    ) -> Iterator[tuple[_Case, Any]]:
        """Yield each case with its result, as soon as it is known.

        That is what the task made of it, or a breakdown where its process broke down.

        Args:
            cases: what to run; it is read only as fast as workers need it.
            alone: tells which cases may harm others; each runs in a process that runs nothing else.

        Raises:
            BackendError: a worker could not be started or replaced.
            Exception: the error of which a worker told by `Raised`.
        """
        queue: _Queue[_Case] = _Queue(cases, alone)
        while True:
            yield from self._given_up(queue)
            for worker in list(self._workers):
                if worker.ready and not worker.batch:
                    self._employ(worker, queue)
            busy = [worker for worker in self._workers if worker.batch or not worker.ready]
            if queue.waiting() and len(self._workers) < self._size:
                busy.append(self._start())
            if not busy:
                return
            yield from self._collect(busy, queue)

    def _given_up(self, queue: _Queue[_Case]) -> Iterator[tuple[_Case, Any]]:
        """Yield a breakdown for the cases that wait to run alone, of operators that only crash."""
        for waiting in (queue.suspects, queue.singles):
            for case in [waiting.popleft() for _ in range(len(waiting))]:
                if self._row[_operator(case)] < HOPELESS:
                    waiting.append(case)
                    continue
                message = f"not run: the {HOPELESS} cases of its operator before it crashed"
                yield case, Breakdown(BreakdownKind.CRASH, message)

    def _employ(self, worker: _Worker, queue: _Queue[_Case]) -> None:
        if not queue.waiting():
            return
        if worker.ran_suspect or (queue.suspects and not worker.fresh):
            # A suspect has a process of its own; `run` starts another one where cases wait.
            worker.end()
            self._workers.remove(worker)
            return
        worker.ran_suspect = bool(queue.suspects)
        batch = [queue.suspects.popleft()] if queue.suspects else queue.batch()
        worker.give(batch, self._timeout)

    def _collect(self, busy: list[_Worker], queue: _Queue[_Case]) -> Iterator[tuple[_Case, Any]]:
        """Wait for messages, and take them; end what is overdue."""
        patience = max(0.0, min(worker.deadline for worker in busy) - monotonic())
        speaking = wait([worker.connection for worker in busy], patience)
        for worker in busy:
            if worker.connection in speaking:
                yield from self._hear(worker, queue)
            elif monotonic() >= worker.deadline:
                if worker.ready is None:
                    raise BackendError(f"{self._backend} did not get ready again")
                yield from self._bury(worker, queue, BreakdownKind.HANG)

    def _hear(self, worker: _Worker, queue: _Queue[_Case]) -> Iterator[tuple[_Case, Any]]:
        """Take a worker's message; it gets its next batch before its outcomes are judged."""
        if worker.ready is None:
            self._greet(worker)
            return
        heard: list[tuple[_Case, Any]] = []
        error: Exception | None = None
        removed = BreakdownKind.DEVICE_REMOVED
        try:
            outcomes = worker.connection.recv()
        except (EOFError, OSError):
            outcomes = []
            heard += self._bury(worker, queue, BreakdownKind.CRASH)
        worker.deadline = monotonic() + self._timeout
        for outcome in outcomes:
            if isinstance(outcome, Raised):
                error = outcome.error
                break
            if isinstance(outcome, Breakdown) and outcome.kind is removed:
                heard += self._bury(worker, queue, removed, outcome)
                break
            case = worker.batch.popleft()
            self._row[_operator(case)] = 0
            heard.append((case, outcome))
        if worker in self._workers and not worker.batch:
            self._employ(worker, queue)
        yield from heard
        if error is not None:
            raise error

    def _bury(
        self,
        worker: _Worker,
        queue: _Queue[_Case],
        kind: BreakdownKind,
        outcome: Breakdown | None = None,
    ) -> Iterator[tuple[_Case, Any]]:
        """End a worker that broke down; blame its case, or keep that for one more try alone."""
        ended = how_it_ended(worker.process) if kind is BreakdownKind.CRASH else ""
        self._drop(worker)
        suspect = worker.batch[0]
        crash = (_operator(suspect), ended)
        repeated = bool(ended) and worker.single and self._crashes[crash] >= REPEATS
        if not worker.alone and not repeated:
            # Of a batch nobody knows which case it was; a case that ran by itself is the suspect.
            held = queue.suspects if worker.single else queue.singles
            held.extend(worker.batch)
            return
        self._crashes[crash] += worker.alone
        self._row[crash[0]] += kind is BreakdownKind.CRASH
        worker.batch.clear()
        if outcome is None:
            overdue = f"no result after {self._timeout:g} seconds, so its process was ended"
            message = overdue if kind is BreakdownKind.HANG else f"its process {ended}"
            outcome = Breakdown(kind, message, worker.said())
        elif not outcome.diagnostics:
            outcome = replace(outcome, diagnostics=worker.said())
        yield suspect, outcome


def _operator(case: Case | PlannedCase) -> str:
    """Return the first part of a case's identifier, which a case that is not built has too."""
    return case.identifier.partition("/")[0]


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C while something begins that must be ended again.

    A process that starts inherits the mask until it is ready. The mask alone holds nothing back
    here, where NumPy's threads take the signal in this one's place.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
