"""A connection to Dask's scheduler: its workers, and calls to them.

For `--scheduler local:N`, it also starts the scheduler and N workers. Each call names the worker
that runs it. Functions of Dask run in threads of their own if they may wait forever for a process
that hangs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final, TypeVar
from uuid import uuid4

from dmlconf.backends.protocol import BackendError
from dmlconf.extras import install_command
from dmlconf.workers.interrupts import deferred_interrupts, discarded_interrupts

__all__ = ["Answer", "Cluster", "MissingDaskError", "WorkerInfo", "in_thread", "within"]

RESOURCE: Final = "adapter"
"""The resource that marks a Dask worker as usable for dmlconf."""

_REFRESH_SECONDS: Final = 0.5
"""Seconds between two requests to the scheduler for its workers."""
_SILENT_SECONDS: Final = 30.0
"""Seconds without a heartbeat after which a worker counts as gone, until its next heartbeat."""
_CONNECT_SECONDS: Final = 15.0
"""Seconds that Dask may take to connect: less than `_SCHEDULER_SECONDS`, to get Dask's error."""
_SCHEDULER_SECONDS: Final = 20.0
"""Seconds without an answer after which the scheduler is given up."""
_RESULT_SECONDS: Final = 30.0
"""Seconds that a worker may take to deliver the result of a call that has ended."""
_FAREWELL_SECONDS: Final = 5.0
"""Seconds for a last call to all workers, and for closing the connection."""


class MissingDaskError(BackendError):
    """The package `distributed`, Dask's scheduler, is not installed."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker, as the scheduler knows it.

    Attributes:
        address: where the worker listens; a restarted process usually has another address.
        adapters: how many of Dask's resource `adapter` it has.
    """

    address: str
    name: str
    adapters: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call on a worker.

    Attributes:
        call: the number that `Cluster.call` returned.
        worker: the worker's address.
        value: what the function returned; None if no value arrived.
        error: what the function raised, or what Dask raised, such as `KilledWorker`.
        lost: whether no result arrived, since the worker is gone or cannot be reached.
        done: whether the function of a lost worker had returned.
    """

    call: int
    worker: str
    value: Any = None
    error: Exception | None = None
    lost: bool = False
    done: bool = False


@dataclass(slots=True)
class _Seen:
    """A worker's last heartbeat: its time by the scheduler, and when it was noticed here."""

    heartbeat: float
    at: float = field(default_factory=monotonic)


class Cluster:
    """A connection to a scheduler, and a context manager that closes it.

    `tcp://HOST:PORT` and `tls://HOST:PORT` name a scheduler, whose security is set in Dask's own
    configuration. `local:N` starts a scheduler with N workers on this machine; a new TLS key keeps
    other users out.
    """

    def __init__(self, address: str) -> None:
        """Connect.

        Raises:
            MissingDaskError: Dask is not installed.
            BackendError: the scheduler cannot be reached or started, or there is no folder for
                temporary files.
        """
        try:
            client_class = _client_class()
        except ImportError as error:
            message = "--scheduler needs Dask's scheduler"
            raise MissingDaskError(message, install_command("fleet")) from error
        _silence_dask()
        self._local: _LocalCluster | None = None
        self._client: Any = None
        self._address = address
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._calls = 0
        self._futures: dict[int, Any] = {}
        self._seen: dict[str, _Seen] = {}
        self._workers: Mapping[str, WorkerInfo] = {}
        self._others = 0
        self._answered = monotonic()
        self._ended = threading.Event()
        # Without this folder, Dask leaves `dask-scratch-space` in the folder for temporary files.
        try:
            scratch = TemporaryDirectory(prefix="dmlconf-cluster-", ignore_cleanup_errors=True)
        except OSError as error:
            hint = "The environment variable TMPDIR (on Windows TEMP) names another one"
            raise BackendError(f"--scheduler needs a temporary folder: {error}", hint) from error
        self._scratch = scratch
        local, _, count = address.partition(":")
        try:
            _configure({"temporary-directory": self._scratch.name})
            if local == "local":
                self._local = _LocalCluster(int(count), self._scratch.name)
                address = self._local.address
            security = None if self._local is None else self._local.security
            self._client = within(
                _SCHEDULER_SECONDS,
                lambda: client_class(
                    address,
                    timeout=_CONNECT_SECONDS,
                    set_as_default=False,
                    name="dmlconf",
                    security=security,
                ),
            )
            within(_SCHEDULER_SECONDS, self._refresh)
        except BaseException as error:
            self._release()
            if not isinstance(error, Exception):
                raise
            # Whatever Dask raises here, the scheduler cannot be used.
            reason = str(error) or type(error).__name__
            raise BackendError(f"the scheduler {self._address} cannot be used: {reason}") from error
        in_thread(self._keep_refreshing)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop waiting for calls, close the connection, and end the processes of `local:N`."""
        with discarded_interrupts():
            self._ended.set()
            with suppress(Exception):  # Processes that are gone need not be ended.
                for future in self._futures.values():
                    future.release()
            self._release()

    def _release(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                within(_FAREWELL_SECONDS, lambda: self._client.close(timeout=2))
        if self._local is not None:
            self._local.close()
        with discarded_interrupts():
            self._scratch.cleanup()

    @property
    def address(self) -> str:
        """The scheduler's address, as given."""
        return self._address

    @property
    def alive(self) -> bool:
        """Whether the connection is open and the scheduler answered in the last 20 seconds."""
        if self._client.status == "closed":
            return False
        return monotonic() - self._answered < _SCHEDULER_SECONDS

    @property
    def workers(self) -> Mapping[str, WorkerInfo]:
        """The workers that have an adapter and whose heartbeats arrive, by address."""
        return self._workers

    @property
    def others(self) -> int:
        """How many connected workers have no adapter."""
        return self._others

    def call(self, worker: str, function: Callable[..., Any], *arguments: Any) -> int:
        """Start a function on a worker, and return the number of the call, for its `Answer`."""
        self._calls += 1
        number = self._calls
        future = self._client.submit(
            function,
            *arguments,
            key=f"dmlconf-{uuid4().hex}",
            workers=[worker],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            pure=False,
            retries=0,
        )
        self._futures[number] = future
        future.add_done_callback(
            lambda done: in_thread(lambda: self._answers.put(self._fetched(number, worker, done)))
        )
        return number

    def forget(self, call: int) -> None:
        """Stop waiting for the answer to a call."""
        future = self._futures.pop(call, None)
        if future is not None:
            with suppress(Exception):
                future.release()

    def tell_all(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run a function on all `workers`, even busy ones, for at most 5 seconds; ignore errors."""
        workers = list(self._workers)
        with suppress(Exception):  # Workers that are gone need no call.
            within(
                _FAREWELL_SECONDS,
                lambda: self._client.run(function, *arguments, workers=workers, on_error="ignore"),
            )

    def answer(self, seconds: float) -> Answer | None:
        """Return the next answer; None if it is to a forgotten call, or does not arrive in time."""
        try:
            answer = self._answers.get(timeout=seconds)
        except Empty:
            return None
        return None if self._futures.pop(answer.call, None) is None else answer

    def _fetched(self, number: int, worker: str, future: Any) -> Answer:
        if future.status in ("cancelled", "lost"):
            return Answer(number, worker, lost=True)
        done = future.status == "finished"
        deadline = monotonic() + _RESULT_SECONDS
        while monotonic() < deadline and number in self._futures:
            try:
                # This returns the function's own error, even an OSError, and raises Dask's.
                error = future.exception(timeout=1.0)
                if error is None:
                    return Answer(number, worker, future.result(timeout=1.0))
            except TimeoutError:
                continue
            except OSError:
                break
            except Exception as raised:
                error = raised
            lost = type(error).__name__ in ("KilledWorker", "FutureCancelledError")
            return Answer(number, worker, error=error, lost=lost)
        return Answer(number, worker, lost=True, done=done)

    def _keep_refreshing(self) -> None:
        while not self._ended.wait(_REFRESH_SECONDS):
            with suppress(Exception):  # `alive` tells whether the scheduler is gone.
                self._refresh()

    def _refresh(self) -> None:
        identity = self._client.sync(self._client.scheduler.identity, n_workers=-1)
        now = monotonic()
        workers, others = {}, 0
        for address, worker in identity["workers"].items():
            adapters = worker["resources"].get(RESOURCE, 0)
            if not adapters:
                others += 1
                continue
            seen = self._seen.setdefault(address, _Seen(worker["last_seen"]))
            if worker["last_seen"] != seen.heartbeat:
                seen.heartbeat, seen.at = worker["last_seen"], now
            if now - seen.at < _SILENT_SECONDS:
                workers[address] = WorkerInfo(address, str(worker["name"]), adapters)
        self._workers, self._others, self._answered = workers, others, now


def _client_class() -> Any:
    import distributed

    class Client(distributed.Client):  # type: ignore[misc]  # Dask has no types here.
        """A client whose deletion does nothing; Dask's own waits half a minute after a refusal."""

        def __del__(self) -> None:
            pass

    return Client


def _silence_dask() -> None:
    """Let Dask, asyncio and Tornado log nothing below `CRITICAL`; dmlconf reports lost workers."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in (*names, "distributed", "asyncio", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _configure(settings: Mapping[str, Any]) -> None:
    import dask

    dask.config.set(settings)


class _LocalCluster:
    """A scheduler and workers on this machine.

    Attributes:
        security: the TLS key that clients and workers need.
    """

    def __init__(self, workers: int, scratch: str) -> None:
        from distributed import LocalCluster
        from distributed.security import Security

        _configure(_LOCAL_SETTINGS)
        self.security = Security.temporary()
        self._cluster: Any = None
        try:
            # A terminal and service managers send signals to all processes of the group.
            with deferred_interrupts(inherited=True):
                self._cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    resources={RESOURCE: 1},
                    dashboard_address=None,
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # Any port.
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                    host="127.0.0.1",
                    security=self.security,
                    local_directory=scratch,
                    env=dict.fromkeys(("TMPDIR", "TEMP", "TMP"), scratch),
                )
        except BaseException:
            self.close()
            raise
        self.address: str = self._cluster.scheduler_address

    def close(self) -> None:
        """End the processes, or give up after 10 seconds."""
        with discarded_interrupts():
            if self._cluster is not None:
                close = partial(self._cluster.close, timeout=_FAREWELL_SECONDS)
                with suppress(Exception):  # Processes that are gone need not be ended.
                    within(2 * _FAREWELL_SECONDS, close)


_LOCAL_SETTINGS: Final = {
    "logging": {"distributed": "critical"},
    "distributed.worker.daemon": False,
    # Pages over HTTP would need no key.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


_Result = TypeVar("_Result")


def in_thread(function: Callable[[], None]) -> None:
    """Start a function in a thread that does not keep the process alive."""
    threading.Thread(target=function, name="dmlconf-cluster", daemon=True).start()


def within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Return a function's result, or raise what it raises.

    Raises:
        TimeoutError: the function takes longer than `seconds`; it continues in its thread.
    """
    result: Future[_Result] = Future()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # Raised again in the waiting thread.
            result.set_exception(error)

    in_thread(run)
    try:
        return result.result(seconds)
    except TimeoutError as error:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:.0f} seconds") from error
