"""One worker process, as the main process sees it."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from time import monotonic
from typing import Any, Final

from dmlconf.backends.process_end import how_it_ended
from dmlconf.backends.protocol import BreakdownKind
from dmlconf.backends.registry import BackendName
from dmlconf.workers.messages import receive
from dmlconf.workers.spawning import spawned
from dmlconf.workers.worker import Ready, Stop, Task, work

__all__ = ["START_SECONDS", "LostProcess", "Ran", "WorkerProcess", "wait_for_messages"]

START_SECONDS: Final = 120.0
"""How long a worker may take until its backend is ready."""

_POLL_SECONDS: Final = 0.25
"""How often to check whether a process is dead, since another may keep its pipe open."""

_DIAGNOSTICS_BYTES: Final = 8192
"""How many of the last bytes of a worker's standard streams are kept with a verdict."""

_DIAGNOSTICS_FILE_BYTES: Final = 1 << 20
"""A larger file of standard streams is emptied."""

_END_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A worker process that broke down while a case ran in it or waited there.

    Attributes:
        process: the number of the process in the run, from 1.
        sequence: the number that the case had in the process, from 1, or would have had.
        together: how many cases of the batch had no outcome; each may be the cause.
        blamed: whether the case was blamed; if not, it runs again.
    """

    kind: BreakdownKind
    message: str
    process: int
    sequence: int
    together: int
    blamed: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """Where a case ran.

    Attributes:
        process: the number of the process in the run, from 1.
        sequence: the number of the case in that process, from 1.
        lost: the processes that broke down before the case had its outcome, in their order.
    """

    process: int
    sequence: int
    lost: tuple[LostProcess, ...] = ()


class WorkerProcess:
    """One process and its batch.

    Attributes:
        ready: the backend's environment and capabilities; None until the backend can be used.
        batch: the cases that were sent and have no result yet.
        idle: whether the process waits for the next batch.
        single: whether the last batch had a single case.
        alone: whether the process was sent only one batch, of a single case.
        fresh: whether no batch was sent yet.
        ran_suspect: whether a case was sent that must have a process to itself.
        growth: how many bytes of memory the process has grown by since the backend became ready.
        deadline: when the process becomes overdue, by the monotonic clock.
    """

    def __init__(
        self, backend: BackendName, task: Task, directory: Path, number: int, timeout: float
    ) -> None:
        """Start the process.

        Args:
            directory: the folder for the file of the standard streams.
            number: the number of the process in the run, from 1.
            timeout: how many seconds a case may take.

        Raises:
            OSError: the system lets no process start.
        """
        self._number = number
        self._results = 0
        self._diagnostics = directory / f"worker-{number}.stderr"
        self._diagnostics.touch()
        self._timeout = timeout
        self._earlier_diagnostics = b""
        self._process, self.connection = spawned(work, backend, task, self._diagnostics, timeout)
        self.ready: Ready | None = None
        self.batch: deque[Any] = deque()
        self.idle = False
        self.single = False
        self.alone = False
        self.fresh = True
        self.ran_suspect = False
        self.growth = 0
        self.deadline = monotonic() + START_SECONDS

    def lost(
        self, kind: BreakdownKind, message: str, *, blamed: bool = False
    ) -> Iterator[tuple[Any, LostProcess]]:
        """Yield the cases of the batch without an outcome, and how the process broke down."""
        together = len(self.batch)
        for at, case in enumerate(self.batch, self._results + 1):
            yield case, LostProcess(kind, message, self._number, at, together, blamed)

    def next_result(self) -> Ran:
        """Count a result, and return where its case ran."""
        self._results += 1
        return Ran(self._number, self._results)

    def send(self, cases: Sequence[Any]) -> bool:
        """Send the next batch, and return whether the process was alive."""
        self.batch = deque(cases)
        self.single = len(cases) == 1
        self.alone = self.fresh and self.single
        self.fresh = self.idle = False
        self.extend()
        try:
            self.connection.send(cases)
        except OSError:
            return False
        return True

    def received(self) -> Any:
        """Return the next message; None if there is none, or if it cannot be read."""
        try:
            return self.message()
        except Exception:  # What arrives from a process that dies may be cut anywhere.
            return None

    def message(self) -> Any:
        """Return the next message; None if there is none, or if the process is overdue.

        Raises:
            Exception: the message cannot be read.
        """
        if not self.connection.poll():
            return None
        try:
            return receive(self.connection, lambda: self.dead or self._overdue)
        except EOFError:
            if self.dead or not self._overdue:
                raise
            return None

    @property
    def _overdue(self) -> bool:
        return monotonic() >= self.deadline

    def stop(self) -> bool:
        """Ask the process for the results that it has, and return whether it was alive."""
        try:
            self.connection.send(Stop())
        except OSError:
            return False
        return True

    def extend(self) -> None:
        """Set the deadline to the time limit of a case from now."""
        self.deadline = monotonic() + self._timeout

    @property
    def dead(self) -> bool:
        """Whether the process has ended, even if its children still have the pipe open."""
        return self._process.exitcode is not None

    def end(self) -> None:
        """Ask the process to end, and `kill` it after `_END_SECONDS`."""
        with suppress(OSError):
            self.connection.send(None)
        self._process.join(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the process at once and, except on Windows, its group."""
        process = self._process.pid
        if hasattr(os, "killpg") and process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self.connection.close()

    def ending(self) -> str:
        """Return how the process ended, by `how_it_ended`."""
        return how_it_ended(self._process)

    def diagnostics(self) -> str:
        """Return the end of what the process wrote to its standard streams."""
        content = self._earlier_diagnostics
        with suppress(OSError):  # Something else, such as a clean-up of old files, removed it.
            content += _tail(self._diagnostics)
        return content[-_DIAGNOSTICS_BYTES:].decode("utf-8", "replace").strip()

    def limit_diagnostics(self) -> None:
        """If the file of standard streams is large, empty it and keep its end in memory."""
        with suppress(OSError):
            if self._diagnostics.stat().st_size > _DIAGNOSTICS_FILE_BYTES:
                self._earlier_diagnostics = _tail(self._diagnostics)
                os.truncate(self._diagnostics, 0)


def wait_for_messages(
    workers: Sequence[WorkerProcess], given_up: Callable[[], bool] = lambda: False
) -> list[WorkerProcess]:
    """Wait until workers have sent something, have died or are overdue; return these workers.

    Args:
        workers: one worker or more.
        given_up: returns whether to stop waiting in any case.
    """
    while True:
        patience = min(worker.deadline for worker in workers) - monotonic()
        connections = [worker.connection for worker in workers]
        try:
            speaking = wait(connections, max(0.0, min(patience, _POLL_SECONDS)))
        except InterruptedError:  # Windows: Ctrl-C ends a wait even if its handler raises nothing.
            speaking = []
        now = monotonic()
        for worker in workers:
            worker.limit_diagnostics()
        noticed = [
            worker
            for worker in workers
            if worker.connection in speaking or worker.dead or now >= worker.deadline
        ]
        if noticed or given_up():
            return noticed


def _tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - _DIAGNOSTICS_BYTES))
        return stream.read(_DIAGNOSTICS_BYTES)
