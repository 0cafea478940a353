"""Apply a function to items in several processes, or in this one."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Protocol, TypeVar

from dmlconf.backends.errors import ProcessError
from dmlconf.backends.process_end import how_it_ended
from dmlconf.backends.process_start import children_ignore_interrupts, ignore_interrupts
from dmlconf.workers.messages import receive
from dmlconf.workers.spawning import spawned

__all__ = ["ItemMap", "in_processes"]

_POLL_SECONDS: Final = 0.25
"""How often to check whether a process is dead, since another may keep its pipe open."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ItemMap(Protocol):
    """Applies a function to each item, and yields the results in the order of the items."""

    def __call__(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], /
    ) -> Iterator[_Result]:
        """Yield the results, all of which must be taken before the next call.

        Raises:
            ProcessError: a process died.
            Exception: what the function raised or, in a process, `start` of `in_processes`.
            RuntimeError: a process raised an exception that pickling would change.
        """
        ...


@contextmanager
def in_processes(
    jobs: int, start: Callable[..., None], state: tuple[Any, ...]
) -> Iterator[ItemMap]:
    """Start processes for an `ItemMap`, and end them at the end of the block.

    If the system starts none, this process does the work.

    Args:
        jobs: the most processes; 1 stands for this process alone.
        start: called once in each process, before anything else.
        state: the arguments of `start`.
    """
    processes: list[_Process] = []
    try:
        if jobs > 1:
            with suppress(OSError, ImportError):
                for _ in range(jobs):
                    processes.append(_Process(start, state))
        if processes:
            yield lambda function, items: _mapped(processes, function, items)
        else:
            start(*state)
            yield map
    finally:
        for process in processes:
            process.kill()


class _Process:
    def __init__(self, start: Callable[..., None], state: tuple[Any, ...]) -> None:
        with children_ignore_interrupts():
            self._process, self.connection = spawned(_serve, start, state)

    def send(self, function: Callable[[Any], Any], item: Any) -> None:
        """Send the next item; if the process has died, `received` raises the error."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((function, item))

    def received(self) -> Any:
        """Return the next result, or raise `ProcessError` or what a function raised."""
        try:
            result, error = receive(self.connection, lambda: self.dead)
        except (EOFError, OSError) as end:  # It may die in the middle of a message.
            raise ProcessError(f"a process {how_it_ended(self._process)}") from end
        if error is not None:
            raise error
        return result

    @property
    def dead(self) -> bool:
        """Whether the process has ended, even if its children still have the pipe open."""
        return self._process.exitcode is not None

    def kill(self) -> None:
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
        self.connection.close()


def _mapped(
    processes: Sequence[_Process], function: Callable[[_Item], _Result], items: Sequence[_Item]
) -> Iterator[_Result]:
    at_work: dict[_Process, int] = {}
    results: dict[int, _Result] = {}
    idle, sent = list(processes), 0
    for number in range(len(items)):
        while number not in results:
            while idle and sent < len(items):
                process = idle.pop()
                process.send(function, items[sent])
                at_work[process] = sent
                sent += 1
            speaking = wait([process.connection for process in at_work], _POLL_SECONDS)
            for process in [each for each in at_work if each.connection in speaking or each.dead]:
                results[at_work.pop(process)] = process.received()
                idle.append(process)
        yield results.pop(number)


def _serve(connection: Connection, start: Callable[..., None], state: tuple[Any, ...]) -> None:
    ignore_interrupts()
    failed: Exception | None = None
    try:
        start(*state)
    except Exception as raised:
        failed = raised
    with suppress(EOFError, OSError):
        while True:
            function, item = connection.recv()
            result = None
            error: Exception | None = failed
            if error is None:
                try:
                    result = function(item)
                except Exception as raised:
                    error = raised
                    error.add_note(f"In a process:\n{traceback.format_exc()}")
            connection.send((result, None if error is None else _sendable(error)))


def _sendable(error: Exception) -> Exception:
    """Return the error, or a `RuntimeError` with its text if a pickled copy would differ."""
    with suppress(Exception):
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and str(copy) == str(error):
            return error
    other = RuntimeError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        other.add_note(note)
    return other
