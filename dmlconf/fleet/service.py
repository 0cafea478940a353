"""What a scheduler's workers do: open the backend once, then run and judge batches of cases.

Each worker process has at most one session, for one job. The session has a thread of its own,
because a backend's processes end with the thread that started them.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import dmlconf
from dmlconf.backends.circumstances import chosen_circumstances
from dmlconf.backends.protocol import BackendError, Capabilities, Environment
from dmlconf.backends.registry import BackendName
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.documents.problems import ExpectedError
from dmlconf.engine.against import expectations
from dmlconf.engine.plan_verdicts import compares_unfused, verdicts
from dmlconf.engine.session import header_environment, open_backend
from dmlconf.excuses.substrate import NO_SUBSTRATE, Substrate
from dmlconf.excuses.waivers import Waiver, effective_waivers
from dmlconf.judging.conclusion import JudgeOptions
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Limits

__all__ = ["Batch", "Job", "Prepared", "Refusal", "finish", "prepare", "run_cases"]

_IDLE_SECONDS: Final = 600.0
"""Seconds without cases after which a session ends, since its client may be gone."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Job:
    """What all workers need to know of a run.

    Attributes:
        identifier: the name of the run's session in each worker.
        dmlconf: the version that planned the run.
        suite_digest: SHA-256 of the case files.
        paths: where the suite is, as given; empty for the bundled one.
        operators: those of the planned cases; `GRAPHS` for graphs.
        challenge: the number that changes the seeds of generated data, as `load_suite` takes it.
        against: what gives expected values that cases do not state.
        limits: what each of Dask's workers may use.
        waivers: the user's waivers; each worker chooses those for its environment.
        compare_unfused: as `compares_unfused` takes it.
        circumstances: names, as `chosen_circumstances` takes them.
        known_faults: whether a known fault of DirectML waives a failure.
    """

    identifier: str
    dmlconf: str
    suite_digest: str
    catalogue_digest: str
    paths: tuple[str, ...]
    operators: frozenset[str]
    challenge: int | None
    backend: BackendName
    against: str
    limits: Limits
    substrate: Substrate = NO_SUBSTRATE
    waivers: tuple[Waiver, ...] = ()
    compare_unfused: bool | None = None
    circumstances: tuple[str, ...] = ()
    known_faults: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A worker can run the job; `record` is its environment as in a log's header."""

    environment: Environment
    capabilities: Capabilities
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A worker cannot run the job, or cannot continue it.

    Attributes:
        again: whether to prepare the worker again, since this process has not prepared the job.
    """

    message: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A worker's verdicts on some cases.

    Attributes:
        stale: for each recording that gives expected values, the cases that have changed since
            they were recorded.
    """

    verdicts: tuple[Verdict, ...]
    stale: tuple[tuple[str, ...], ...]


class _Session:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dmlconf-job")
        self._idle: threading.Timer | None = None
        try:
            self.prepared = self._call(self._open)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        self._start_idle_timer()

    def run(self, identifiers: Sequence[str]) -> Batch:
        if self._idle is not None:
            self._idle.cancel()
        try:
            return self._call(lambda: self._run([self._plan[name] for name in identifiers]))
        finally:
            self._start_idle_timer()

    def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._call(self._backend.close)
        self._thread.shutdown(wait=False)

    def _call(self, function: Callable[[], _Result]) -> _Result:
        return self._thread.submit(function).result()

    def _start_idle_timer(self) -> None:
        self._idle = threading.Timer(_IDLE_SECONDS, finish, (self._job.identifier,))
        self._idle.daemon = True
        self._idle.start()

    def _open(self) -> Prepared:
        job = self._job
        paths = list(map(Path, job.paths)) or [cases_directory()]
        suite = load_suite(paths, operators=job.operators, challenge=job.challenge)
        digests = suite.digest, catalogue_digest()
        if digests != (job.suite_digest, job.catalogue_digest):
            here = ", ".join(map(str, paths))
            raise _OtherSuiteError(
                f"its suite ({here}) or catalogue differs from this machine's: "
                f"SHA-256 {digests[0][:12]} and {digests[1][:12]} there, "
                f"{job.suite_digest[:12]} and {job.catalogue_digest[:12]} here"
            )
        self._plan = {planned.identifier: planned for planned in suite.plan()}
        self._backend = open_backend(job.backend, job.limits, judged=True)
        try:
            self._under = chosen_circumstances(
                job.circumstances, self._backend.capabilities, str(job.backend)
            )
            self._unfused = compares_unfused(job.compare_unfused, self._backend.capabilities)
            plan = list(self._plan.values())
            self._expected = expectations(job.against, self._backend, suite, plan, paths)
        except BaseException:
            self._backend.close()
            raise
        self._waivers = effective_waivers(job.waivers, self._backend.environment)
        return Prepared(
            self._backend.environment,
            self._backend.capabilities,
            header_environment(self._backend),
        )

    def _run(self, cases: Sequence[PlannedCase]) -> Batch:
        options = JudgeOptions(
            self._job.substrate,
            self._waivers,
            self._unfused,
            self._under,
            self._job.known_faults,
        )
        done = tuple(verdicts(cases, self._backend, self._expected, self._job.limits, options))
        stale = tuple(tuple(each.stale) for each in self._expected.recordings)
        for each in self._expected.recordings:
            each.stale.clear()
        return Batch(done, stale)


class _OtherSuiteError(BackendError):
    """The worker's suite or catalogue differs from the job's."""


_SESSIONS: Final[dict[str, _Session]] = {}
_LOCK: Final = threading.RLock()


def prepare(job: Job) -> Prepared | Refusal:
    """End the sessions of other jobs in this process, and open the job's backend unless it is open.

    Returns:
        `Prepared`; or a refusal if the version of dmlconf, the suite or the catalogue differs from
        the job's, or if the suite, the backend or the source of expected values cannot be used.
    """
    if job.dmlconf != dmlconf.__version__:
        versions = f"dmlconf {dmlconf.__version__} there, {job.dmlconf} here"
        return Refusal(f"it has a different version: {versions}")
    # Dask marks its workers as daemons, which may not start processes. The processes that dmlconf
    # starts end with their parent anyway.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # Python has no public way to set it for a running process.
    with _LOCK:
        for other in [each for each in _SESSIONS if each != job.identifier]:
            finish(other)
        try:
            session = _SESSIONS.get(job.identifier) or _Session(job)
        except (ExpectedError, OSError) as error:
            return Refusal(str(error))
        _SESSIONS[job.identifier] = session
        return session.prepared


def run_cases(job: str, identifiers: Sequence[str]) -> Batch | Refusal:
    """Run and judge cases of a job.

    Args:
        job: its identifier.

    Returns:
        `Batch`, or a refusal if this process has not prepared the job. A refusal because the
        backend or the operating system failed ends the job in this process.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
    """
    with _LOCK:
        session = _SESSIONS.get(job)
        if session is None:
            return Refusal("its process has not prepared the job", again=True)
        try:
            return session.run(identifiers)
        except (BackendError, OSError) as error:
            finish(job)
            return Refusal(str(error))


def finish(job: str) -> None:
    """End a job in this process, if it was prepared, and close its backend."""
    with _LOCK:
        session = _SESSIONS.pop(job, None)
        if session is not None:
            session.close()
