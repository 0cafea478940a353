"""One run: from a plan to a log with a verdict for every selected case."""

from __future__ import annotations

import platform
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

import dmlconf
from dmlconf.backends import registry
from dmlconf.backends.protocol import Capabilities, Environment, Outcome
from dmlconf.cases.build import build
from dmlconf.cases.errors import CaseError
from dmlconf.cases.loader import Suite, case_problems
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.runner.judge import Against, judge, not_run, unsupported_reason
from dmlconf.runner.log import Footer, Header, LogWriter
from dmlconf.runner.substrate import NO_SUBSTRATE, Substrate
from dmlconf.runner.verdict import ReasonKind, Status, Verdict
from dmlconf.runner.worker import run_batch

__all__ = [
    "Limits",
    "OpenBackend",
    "built",
    "environment_record",
    "make_header",
    "open_backend",
    "reference",
    "run",
    "runnable",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """How to run.

    Attributes:
        jobs: worker processes side by side.
        timeout: seconds that one case may take in a worker process.
        fail_fast: whether to stop at the first verdict that fails the run.
        substrate: what lies below DirectML; cases that fail for its limits are set apart.
    """

    jobs: int = 1
    timeout: float = 60.0
    fail_fast: bool = False
    substrate: Substrate = NO_SUBSTRATE


@dataclass(frozen=True, slots=True)
class OpenBackend:
    """A backend that is ready to run cases.

    Attributes:
        name: the backend as named on the command line.
        environment: what it runs on.
        capabilities: what it can run.
        execute: yields each case with its outcome, as soon as it is known.
        close: gives back what the backend holds.
    """

    name: registry.BackendName
    environment: Environment
    capabilities: Capabilities
    execute: Callable[[Iterator[Case]], Iterator[tuple[Case, Outcome]]]
    close: Callable[[], None]


def open_backend(name: registry.BackendName, limits: Limits) -> OpenBackend:
    """Open a backend: in this process if it is trusted and alone, else in worker processes.

    Raises:
        BackendError: it cannot be used.
    """
    if name.isolated or limits.jobs > 1:
        # Processes and pipes take time to import, and the reference alone needs none of them.
        from dmlconf.runner.pool import WorkerPool

        pool = WorkerPool(name, limits.jobs, limits.timeout)
        try:
            ready = pool.ready()
        except BaseException:
            pool.close()
            raise
        return OpenBackend(name, ready.environment, ready.capabilities, pool.run, pool.close)
    backend = registry.create(name)

    def execute(cases: Iterator[Case]) -> Iterator[tuple[Case, Outcome]]:
        for case in cases:
            for outcome in run_batch(backend, [case]):
                yield case, outcome

    return OpenBackend(name, backend.environment(), backend.capabilities(), execute, backend.close)


def reference(name: str, tested: registry.BackendName) -> Against:
    """Return what gives the expected outcome of cases that state none.

    Args:
        name: the backend to compare with, as named on the command line.
        tested: the backend under test; it never gives its own expected outcomes.

    Raises:
        BackendError: there is no such backend.
    """
    if registry.parse(name) == tested:
        return lambda case: None
    backend = registry.create(registry.parse(name))
    return lambda case: next(run_batch(backend, [case]))


def run(
    plan: Sequence[PlannedCase],
    backend: OpenBackend,
    against: Against,
    limits: Limits,
    log: LogWriter,
    header: Header,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
) -> Footer:
    """Run the plan, and write header, verdicts and footer to the log.

    Every planned case gets one verdict: where the run is interrupted, stopped or dies of an
    error, those that were not reached get `not run`.

    Args:
        plan: what to run.
        backend: what to run it on.
        against: gives the expected outcome of cases that state none.
        limits: how to run.
        log: receives every verdict as it is reached.
        header: the log's first line.
        on_verdict: is called with every verdict after it was logged.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a worker could not be replaced.
    """
    began = perf_counter()
    counts: Counter[Status] = Counter()
    reached: set[str] = set()
    complete = False
    unreached = ReasonKind.INTERRUPTED

    def record(verdict: Verdict) -> None:
        log.verdict(verdict)
        reached.add(verdict.case)
        counts[verdict.status] += 1
        on_verdict(verdict)

    log.header(header)
    try:
        with closing(_verdicts(plan, backend, against, limits.substrate)) as verdicts:
            for verdict in verdicts:
                record(verdict)
                if limits.fail_fast and verdict.status.fails_run:
                    unreached = ReasonKind.STOPPED_AT_FIRST_FAILURE
                    break
        complete = len(reached) == len(plan)
    except KeyboardInterrupt:
        pass
    finally:
        for planned in plan:
            if planned.identifier not in reached:
                template = planned.template
                name, tags = template.operator_name, template.tags
                record(not_run(planned.identifier, name, tags, unreached))
        summary = {status.value: counts[status] for status in Status}
        footer = Footer(_now(), round(perf_counter() - began, 3), complete, summary)
        log.footer(footer)
    return footer


def _now() -> str:
    """Return the date and time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_header(
    suite: Suite,
    paths: Iterable[str],
    selected: int,
    backend: OpenBackend,
    against: str,
    options: dict[str, Any],
) -> Header:
    """Return the log's first line."""
    return Header(
        dmlconf=dmlconf.__version__,
        started=_now(),
        backend=str(backend.name),
        against=against,
        environment=environment_record(backend.environment),
        paths=tuple(paths),
        suite_digest=suite.digest,
        catalogue_digest=catalogue_digest(),
        selected=selected,
        options=options,
    )


def environment_record(environment: Environment) -> dict[str, Any]:
    """Return what a backend runs on, with Python, NumPy and the operating system."""
    return {
        **asdict(environment),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _verdicts(
    plan: Sequence[PlannedCase], backend: OpenBackend, against: Against, substrate: Substrate
) -> Generator[Verdict, None, None]:
    declined: deque[Verdict] = deque()
    half = bool(backend.environment.details.get("half", False))
    for case, outcome in backend.execute(runnable(plan, backend.capabilities, declined)):
        while declined:
            yield declined.popleft()
        verdict = judge(case, outcome, against, half_precision=half)
        yield substrate.set_apart(case, outcome, verdict)
    yield from declined


def built(planned: PlannedCase) -> Case:
    """Return the planned case.

    Raises:
        InvalidFilesError: it is a case of a matrix that cannot be built.
    """
    try:
        return build(planned)
    except CaseError as error:
        raise InvalidFilesError(case_problems(planned.template, error)) from error


def runnable(
    plan: Iterable[PlannedCase], capabilities: Capabilities, declined: deque[Verdict]
) -> Iterator[Case]:
    """Yield the cases that the backend must run, and put aside a verdict on the others.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
    """
    for planned in plan:
        case = built(planned)
        reason = unsupported_reason(case, capabilities)
        if reason is None:
            yield case
        else:
            location = str(case.about.location)
            declined.append(
                Verdict(
                    case.identifier, case.operator_name, case.tags, Status.UNSUPPORTED, None,
                    reason, location=location,
                )
            )  # fmt: skip
