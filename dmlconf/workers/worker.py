"""The worker process: runs batches of cases on a backend.

The main process (`process` and `pool`) and a worker exchange messages:

- The worker first sends `Ready`, or sends `Refused` and ends.
- The main process sends a batch of cases. The worker answers with one or more `Results`, which have
  one result for each case, in order. A `Raised` ends the batch.
- After the last `Results`, the main process sends the next batch, or None to end the worker.
- At any time, the main process may send `Stop`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from dmlconf.backends import registry
from dmlconf.backends.errors import described
from dmlconf.backends.process_memory import committed_bytes
from dmlconf.backends.process_start import INTERRUPTS
from dmlconf.backends.protocol import (
    Backend,
    BackendError,
    Capabilities,
    Environment,
    Outcome,
    WaitsForDevice,
)
from dmlconf.cases.model import Case
from dmlconf.workers.batch import run_batch
from dmlconf.workers.boundary import checked_capabilities, checked_environment
from dmlconf.workers.tuning import collect_garbage_seldom

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = [
    "Raised",
    "Ready",
    "Refused",
    "Results",
    "Stop",
    "Stopped",
    "Task",
    "outcomes",
    "with_errors",
    "work",
]

GATHER_SECONDS: Final = 0.02
"""Results within this time are sent in one message."""

_WAIT_SHARE: Final = 0.9
"""The share of a case's time limit that a wait for the device may take, so that the backend reports
a hang before its process is ended.
"""

_PR_SET_PDEATHSIG: Final = 1
"""<linux/prctl.h>: sets the signal that a process gets when the thread that started it ends."""

Task = Callable[[Backend], Callable[[Sequence[Any]], Iterator[Any]]]
"""Takes a worker's backend, and returns the function that yields a batch's results."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker's backend can be used; `memory` is what `committed_bytes` returned."""

    environment: Environment
    capabilities: Capabilities
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker's backend cannot be used; the message says why."""

    message: str


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the task, sent instead of a result; the main process raises it."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Results:
    """Some results of a batch, or none.

    Attributes:
        results: one for each of the next cases of the batch, or a `Raised`.
        last: whether the batch is done, so that the worker waits for the next batch.
        memory: what `committed_bytes` returned; 0 unless these are the last results.
    """

    results: Sequence[Any]
    last: bool
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """Asks the worker to send the results that it has, then `Stopped`, and nothing more."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The worker has sent all results that it had."""


def outcomes(backend: Backend) -> Callable[[Sequence[Case]], Iterator[Outcome]]:
    """Return a function that runs a batch of cases on the backend."""
    return partial(run_batch, backend)


def with_errors(
    results: Callable[[Sequence[Any]], Iterator[Any]],
) -> Callable[[Sequence[Any]], Iterator[Any]]:
    """Return a function like `results` that yields a `Raised` instead of raising an exception."""

    def results_and_errors(batch: Sequence[Any]) -> Iterator[Any]:
        try:
            yield from results(batch)
        except Exception as error:
            error.add_note(f"In a worker process:\n{traceback.format_exc()}")
            yield Raised(error)

    return results_and_errors


def work(
    connection: Connection,
    backend: registry.BackendName,
    task: Task,
    diagnostics: Path,
    timeout: float,
) -> None:
    """Run batches until the message None comes, or the main process ends.

    Args:
        connection: the pipe to the main process.
        diagnostics: the file that receives what the process writes to its standard streams.
        timeout: how many seconds a case may take.
    """
    _isolate(diagnostics)
    collect_garbage_seldom()
    instance: Backend | None = None
    try:
        instance = registry.create(backend)
        if isinstance(instance, WaitsForDevice):
            instance.limit_waits(_WAIT_SHARE * timeout)
        results = task(instance)
        environment = checked_environment(instance.environment())
        capabilities = checked_capabilities(instance.capabilities())
        if not callable(getattr(instance, "exercise", None)):
            # A plugin may forward the capabilities of another backend.
            capabilities = replace(capabilities, circumstances=frozenset())
        connection.send(Ready(environment, capabilities, committed_bytes()))
    except Exception as error:
        if instance is not None:
            with suppress(Exception):
                instance.close()
        reason = str(error) if isinstance(error, BackendError) else f"{backend}: {described(error)}"
        # After this, the main process ends this one at once.
        connection.send(Refused(reason))
        return
    sender = _Sender(connection)
    batches: SimpleQueue[Any] = SimpleQueue()
    reader = (connection, batches, sender)
    threading.Thread(target=_read, args=reader, name="batches", daemon=True).start()
    try:
        while (batch := batches.get()) is not None:
            if isinstance(batch, Exception):
                raise batch
            sender.begin_batch()
            for result in results(batch):
                sender.add(result)
            sender.end_batch()
    except (EOFError, OSError):
        pass  # The main process has ended.
    finally:
        instance.close()


def _read(connection: Connection, batches: SimpleQueue[Any], sender: _Sender) -> None:
    """Receive messages in a second thread, since `Stop` may come while a case runs."""
    try:
        while True:
            message = connection.recv()
            if isinstance(message, Stop):
                sender.stop()
                continue
            batches.put(message)
            if message is None:
                return
    except Exception as error:
        batches.put(error)


class _Sender:
    """Sends the results of a short time together, from both threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._together: list[Any] = []
        self._began = monotonic()
        self._stopped = False

    def begin_batch(self) -> None:
        self._began = monotonic()

    def add(self, result: Any) -> None:
        with self._lock:
            self._together.append(result)
            if monotonic() - self._began >= GATHER_SECONDS:
                self._send(last=False)

    def end_batch(self) -> None:
        with self._lock:
            self._send(last=True)

    def stop(self) -> None:
        with self._lock, suppress(OSError):
            if self._together:
                self._send(last=False)
            self._stopped = True
            self._connection.send(Stopped())

    def _send(self, *, last: bool) -> None:
        if self._stopped:
            return
        memory = committed_bytes() if last else 0
        self._connection.send(Results(self._together, last=last, memory=memory))
        self._together, self._began = [], monotonic()


def _isolate(diagnostics: Path) -> None:
    """Redirect output to `diagnostics`, ignore interrupts, and end with the main process."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # What the backend starts ends with this group, unless it leaves it.
    _end_with_parent()
    # If memory runs out, Linux ends this process, not the one that writes the log.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with diagnostics.open("ab") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)


def _end_with_parent() -> None:
    """End this process and, except on Windows, its group as soon as the main process has ended."""
    from multiprocessing import parent_process  # A run that starts no process does not need it.

    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
    if sys.platform == "linux":
        # A backend that hangs in a call may keep the thread above from running.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if not parent.is_alive():
            os._exit(1)
