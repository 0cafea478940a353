"""The worker process: works through batches of cases on a backend that may break down.

Messages to a worker are batches of cases, or None to end it. Messages from it are `Ready` or
`Refused` once, then lists with one result for each case, in order.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from dmlconf.backends import registry
from dmlconf.backends.protocol import (
    Backend,
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Outcome,
)
from dmlconf.cases.model import Case

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Raised", "Ready", "Refused", "Task", "outcomes", "run_batch", "work"]

GATHER_SECONDS: Final = 0.02
"""How long results wait for others: a message for each takes longer than many a case."""

Task = Callable[[Backend], Callable[[Sequence[Any]], Iterator[Any]]]
"""Makes, once in each worker, what turns a batch of cases into one result for each, in order."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker's backend can be used."""

    environment: Environment
    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker's backend cannot be used; the message says why."""

    message: str


@dataclass(frozen=True, slots=True)
class Raised:
    """In a result's place: an error that is not the backend's, for dmlconf to raise."""

    error: Exception


def outcomes(backend: Backend) -> Callable[[Sequence[Case]], Iterator[Outcome]]:
    """Return what runs a batch of cases: the task of a worker that only runs them."""
    return partial(run_batch, backend)


def run_batch(backend: Backend, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Yield one outcome for each case, whatever exceptions the backend raises.

    A backend may run all of a batch before it tells of the first case, so an exception is no one
    case's: the rest is then run one at a time, and a case that raises by itself is to blame.
    """
    done, together = 0, len(cases)
    while done < len(cases):
        given = cases[done : done + together]
        end = done + len(given)
        try:
            for outcome in backend.run(given):
                yield outcome
                done += 1
            if done < end:
                message = "the backend returned fewer outcomes than cases"
                yield Breakdown(BreakdownKind.ERROR, message)
                done += 1
        except Exception as error:
            if len(given) > 1:
                together = 1
                continue
            yield _broken(error)
            done += 1


def _broken(error: Exception) -> Breakdown:
    if isinstance(error, MemoryError):
        return Breakdown(BreakdownKind.OUT_OF_MEMORY, str(error) or "out of memory")
    message = f"{type(error).__name__}: {error}"
    return Breakdown(BreakdownKind.ERROR, message, traceback.format_exc())


def work(
    connection: Connection, backend: registry.BackendName, task: Task, diagnostics: Path
) -> None:
    """Serve batches until told to end.

    Args:
        connection: the pipe to dmlconf.
        backend: which backend to make.
        task: what to do with a batch.
        diagnostics: the file that receives what the process writes to standard error.
    """
    # Ctrl-C reaches the whole process group; ending the workers is for dmlconf to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with diagnostics.open("ab") as stream:
        os.dup2(stream.fileno(), 2)
    try:
        made = registry.create(backend)
        results = task(made)
        connection.send(Ready(made.environment(), made.capabilities()))
    except BackendError as error:
        connection.send(Refused(str(error)))
        return
    except Exception as error:
        connection.send(Refused(f"{backend}: {type(error).__name__}: {error}"))
        return
    try:
        while (batch := connection.recv()) is not None:
            for gathered in _gathered(results(batch)):
                connection.send(gathered)
    except (EOFError, BrokenPipeError):
        pass  # dmlconf is gone, and nobody waits for results any more.
    finally:
        made.close()


def _gathered(results: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield lists of the results that come within a short time."""
    together: list[Any] = []
    began = monotonic()
    for result in results:
        together.append(result)
        if monotonic() - began >= GATHER_SECONDS:
            yield together
            together, began = [], monotonic()
    if together:
        yield together
