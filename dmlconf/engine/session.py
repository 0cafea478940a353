"""Open a backend, give it the cases of a plan, and yield their verdicts or outcomes.

This module also makes the header of a run log.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import dmlconf
from dmlconf.backends import registry
from dmlconf.backends.circumstances import Exercise, exercises_of
from dmlconf.backends.protocol import Backend, BackendError, Capabilities, Environment, Outcome
from dmlconf.backends.subject import REFERENCE
from dmlconf.cases.loading.loader import Suite, valid_case
from dmlconf.cases.model import Case, ExpectedRejection, PlannedCase, Provenance
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.engine.events import Executed, Unsupported
from dmlconf.excuses.deviations import deviations_of
from dmlconf.excuses.findings import findings_of
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.excuses.known_faults import NO_KNOWN_FAULTS, KnownFaults
from dmlconf.judging.conclusion import NO_OPTIONS, Conclusion, JudgeOptions, alone_on
from dmlconf.judging.judge import Against, Recorded, not_asked, unsupported_reason
from dmlconf.judging.needs_run import NeedsRun, begun, continued
from dmlconf.run_log.log import Header
from dmlconf.verdicts.verdict import LostProcess, ReasonKind, Verdict
from dmlconf.workers.batch import run_batch
from dmlconf.workers.execution import Execution, Limits, execution_of
from dmlconf.workers.exercising import run_items, tasks

# Importing processes and pipes takes time.
if TYPE_CHECKING:
    from dmlconf.workers.process import Ran

__all__ = [
    "OpenBackend",
    "conclusion_for",
    "environment_record",
    "executed",
    "from_process",
    "header_environment",
    "in_process",
    "judged",
    "make_header",
    "no_expectation",
    "now",
    "open_backend",
    "reference",
    "runnable",
    "source_digest",
]


@dataclass(frozen=True, slots=True)
class OpenBackend:
    """A backend that is ready to run cases.

    Attributes:
        name: the backend as named on the command line.
        execute: takes cases and `Exercise`s; yields each case with its outcome, and each `Exercise`
            with its outcomes (`Exercises`) or a breakdown.
        faults: the known faults of the backend's DirectML.
        variants: the variants of the backend, by label; empty if it has none.
        is_reference: whether this process runs the reference, so that outcomes are right.
        latest: returns the worker process of the case that `execute` yielded last; None if no
            worker process ran it.
    """

    name: registry.BackendName
    environment: Environment
    capabilities: Capabilities
    execute: Callable[[Iterator[Any]], Iterator[tuple[Any, Any]]]
    close: Callable[[], None]
    faults: KnownFaults = NO_KNOWN_FAULTS
    variants: Mapping[str, OpenBackend] = field(default_factory=dict)
    is_reference: bool = False
    latest: Callable[[], Ran | None] = lambda: None


def open_backend(
    name: registry.BackendName, limits: Limits, *, judged: bool = False
) -> OpenBackend:
    """Open a backend in worker processes if `execution_of` isolates it, else in this process.

    Args:
        judged: whether the engine judges the outcomes.

    Raises:
        BackendError: the backend cannot be used, or it has variants and `judged` is false.
    """
    variants = registry.variants(name)
    if variants and not judged:
        raise BackendError(
            f"{name} runs each case in {len(variants)} variants, which only `dmlconf run` compares",
            f"Name one of them: {', '.join(map(str, variants.values()))}",
        )
    if variants:
        return _open_variants(name, variants, limits)
    if execution_of(name, limits, judged=judged) is Execution.ISOLATED:
        from dmlconf.workers.pool import WorkerPool

        pool = WorkerPool(
            name,
            limits.jobs,
            limits.timeout,
            tasks,
            memory=limits.memory,
            second_tries=limits.second_tries,
        )
        try:
            ready = pool.ready()
            faults = known_faults(ready.environment)
        except BaseException:
            pool.close()
            raise

        def alone(item: Case | Exercise) -> bool:
            return faults.harms_others(item.case if isinstance(item, Exercise) else item)

        execute = partial(pool.run, alone=alone)
        return OpenBackend(
            name,
            ready.environment,
            ready.capabilities,
            execute,
            pool.close,
            faults,
            latest=lambda: pool.latest,
        )
    return in_process(name, registry.create(name))


def _open_variants(
    name: registry.BackendName, variants: Mapping[str, registry.BackendName], limits: Limits
) -> OpenBackend:
    """Open all variants; return the first one, under the backend's own name.

    Raises:
        BackendError: one of them cannot be used.
    """
    backends: dict[str, OpenBackend] = {}
    with ExitStack() as owner:
        for label, variant in variants.items():
            backends[label] = open_backend(variant, limits, judged=True)
            owner.callback(backends[label].close)
        close = owner.pop_all().close
    first = next(iter(backends.values()))
    environment = _environment([variant.environment for variant in backends.values()])
    # Where variants are compared, cases do not run under circumstances.
    capabilities = replace(first.capabilities, circumstances=frozenset())
    return replace(
        first,
        name=name,
        environment=environment,
        capabilities=capabilities,
        close=close,
        variants=backends,
    )


def _environment(environments: Sequence[Environment]) -> Environment:
    """Return the first environment, with `both` for each of its details that differs in another."""
    first = environments[0]
    details = {
        key: value if all(other.details.get(key) == value for other in environments) else "both"
        for key, value in first.details.items()
    }
    return replace(first, details=details)


def in_process(name: registry.BackendName, backend: Backend) -> OpenBackend:
    """Return a backend that runs cases in this process, one by one."""

    def execute(items: Iterator[Case | Exercise]) -> Iterator[tuple[Case | Exercise, Any]]:
        for item in items:
            ready = item if isinstance(item, Exercise) else _with_inputs(item)
            for result in run_items(backend, [ready]):
                yield ready, result

    environment = backend.environment()
    return OpenBackend(
        name,
        environment,
        backend.capabilities(),
        execute,
        backend.close,
        known_faults(environment),
        is_reference=registry.is_reference(backend),
    )


def _with_inputs(case: Case) -> Case:
    if isinstance(case.expectation, ExpectedRejection):
        return case  # The case's tensors may be larger than any memory.
    with suppress(MemoryError):  # The backend runs into the same error and reports it.
        return case.with_inputs()
    return case


def no_expectation(case: Case) -> None:
    """Return None, as a source without expected outcomes."""


def source_digest(against: Against) -> Callable[[str], str | None]:
    """Return a function from an operator to a digest of the outcomes that a source expects of it.

    The digest is None if the source has none.
    """
    if against is no_expectation:
        return lambda operator: "nothing"
    digest: Callable[[str], str | None] = getattr(against, "digest", lambda operator: None)
    return digest


class _ByBackend:
    def __init__(self, name: registry.BackendName) -> None:
        self._name = name
        self._backend = registry.create(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _ByBackend, (self._name,)

    def __call__(self, case: Case) -> Outcome | Recorded:
        outcome = next(run_batch(self._backend, [case]))
        if self._name.name == REFERENCE:
            return outcome
        return Recorded(outcome, Provenance.REFERENCE)

    def digest(self, operator: str) -> str | None:
        """Return the reference's name; None for another backend.

        A change of the reference's code makes cached judgements invalid by itself.
        """
        return REFERENCE if str(self._name) == REFERENCE else None


def reference(name: str, tested: registry.BackendName) -> Against:
    """Return a backend as the source of expected outcomes; the tested backend gives none.

    Args:
        name: the backend to compare with, as named on the command line.

    Raises:
        BackendError: there is no such backend, or it cannot be used.
    """
    parsed = registry.parse(name)
    return no_expectation if parsed == tested else _ByBackend(parsed)


def now() -> str:
    """Return the date and time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_header(
    suite: Suite,
    paths: Iterable[str],
    selected: int,
    backend: OpenBackend,
    against: str,
    options: dict[str, Any],
    *,
    digest: str | None = None,
    shard: Mapping[str, Any] | None = None,
    workers: Sequence[Mapping[str, Any]] = (),
) -> Header:
    """Return the log's first line.

    Args:
        paths: the paths of the suite, as given.
        selected: how many cases were selected; 0 if that is not known yet.
        against: names what gives expected values that cases do not state.
        digest: `cases_digest` of the selected cases.
        shard: the shard, as `Selected.record` describes it.
        workers: the scheduler's workers that run the cases; empty on this machine.
    """
    environment = workers[0]["environment"] if workers else header_environment(backend)
    return Header(
        dmlconf=dmlconf.__version__,
        started=now(),
        backend=str(backend.name),
        against=against,
        environment=environment,
        paths=tuple(paths),
        suite_digest=suite.digest,
        catalogue_digest=catalogue_digest(),
        selected=selected,
        options=options,
        cases_digest=digest,
        shard=shard,
        workers=tuple(workers),
    )


def header_environment(backend: OpenBackend) -> dict[str, Any]:
    """Return the environment of an open backend, for a log's header."""
    environment = environment_record(backend.environment)
    if backend.capabilities.half_precision:  # The outputs cannot be judged again without it.
        environment["details"] = {**environment["details"], "half": True}
    return environment


def environment_record(environment: Environment) -> dict[str, Any]:
    """Return a backend's environment, with Python, NumPy and the operating system."""
    return {
        **asdict(environment),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def conclusion_for(
    backend: OpenBackend, against: Against, options: JudgeOptions = NO_OPTIONS
) -> Conclusion:
    """Return the `Conclusion` that draws verdicts on a backend's outcomes, with all excuses."""
    return Conclusion(
        against,
        backend.faults,
        backend.capabilities.half_precision,
        options,
        backend.is_reference,
        deviations_of(backend.environment),
        findings_of(backend.environment),
        source_digest(against),
    )


def judged(
    plan: Iterable[PlannedCase],
    backend: OpenBackend,
    against: Against,
    options: JudgeOptions = NO_OPTIONS,
    aside: Callable[[PlannedCase, Case], bool] = lambda planned, case: False,
) -> Generator[Verdict, None, None]:
    """Run the plan, and yield each verdict as it is reached.

    If a case needs another run, such as its graph's nodes one by one, its verdict may follow those
    of later cases.

    Args:
        aside: returns whether the caller runs a case elsewhere; such cases get no verdict here.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
    """
    conclusion = conclusion_for(backend, against, options)
    for part in _parts(plan, options.compare_unfused, bool(options.circumstances)):
        yield from _judged_part(part, backend, conclusion, aside)


def executed(
    plan: Iterable[PlannedCase], backend: OpenBackend
) -> Generator[Executed | Unsupported, None, None]:
    """Run the plan without judging it, and yield each outcome as it is known.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started.
    """
    unsupported: deque[Verdict] = deque()
    for case, outcome in backend.execute(runnable(plan, backend.capabilities, unsupported)):
        while unsupported:
            yield Unsupported(unsupported.popleft())
        yield Executed(case, outcome)
    yield from map(Unsupported, unsupported)


def _judged_part(
    plan: Iterable[PlannedCase],
    backend: OpenBackend,
    conclusion: Conclusion,
    aside: Callable[[PlannedCase, Case], bool],
) -> Generator[Verdict, None, None]:
    """Run a part of a plan, and then the further runs that its verdicts need."""
    unsupported: deque[Verdict] = deque()
    waiting: list[tuple[NeedsRun[Verdict], Ran | None]] = []
    cache = conclusion.options.cache
    recall = _nothing if cache is None else cache.recall
    cases = runnable(plan, backend.capabilities, unsupported, aside, recall)
    for item, result in backend.execute(exercises_of(cases, conclusion.options.circumstances)):
        while unsupported:
            yield unsupported.popleft()
        ran = backend.latest()
        judged = begun(conclusion.of(item, result))
        if isinstance(judged, NeedsRun):
            waiting.append((judged, ran))
        else:
            yield from_process(judged, ran)
    yield from unsupported
    run_one = alone_on(backend.execute)
    for each, ran in waiting:
        yield from_process(continued(each, run_one), ran)


def from_process(verdict: Verdict, ran: Ran | None) -> Verdict:
    """Return the verdict with the worker process in which its case ran, if one did."""
    if ran is None:
        return verdict
    lost = tuple(
        LostProcess(
            ReasonKind(each.kind),
            each.message,
            each.process,
            each.sequence,
            each.together,
            each.blamed,
        )
        for each in ran.lost
    )
    return verdict.ran(process=ran.process, sequence=ran.sequence, lost_processes=lost)


_GRAPHS_AT_ONCE: Final = 50
"""The most graphs in a part, if they also run in other forms; those run after the part."""

_EXERCISED_AT_ONCE: Final = 512
"""The most cases in a part, if they also run under circumstances."""


def _parts(
    plan: Iterable[PlannedCase], compare_unfused: bool, exercised: bool
) -> Iterator[Iterable[PlannedCase]]:
    """Yield the plan in parts, in its order; graphs that also run in other forms are kept apart.

    Take all cases of a part before the next part.
    """

    def apart(planned: PlannedCase) -> bool:
        template = planned.template
        return template.is_graph if compare_unfused else template.has_relation

    for is_apart, group in groupby(plan, apart):
        if is_apart or exercised:
            size = _GRAPHS_AT_ONCE if is_apart else _EXERCISED_AT_ONCE
            while cases := list(islice(group, size)):
                yield cases
        else:
            yield group


def _nothing(case: Case) -> None:
    """Recall nothing about a case, for runs without a cache."""


def runnable(
    plan: Iterable[PlannedCase],
    capabilities: Capabilities,
    unsupported: deque[Verdict],
    aside: Callable[[PlannedCase, Case], bool] = lambda planned, case: False,
    recall: Callable[[Case], None] = _nothing,
) -> Iterator[Case]:
    """Yield the cases that the backend must run; append verdicts on those that it cannot run.

    Args:
        unsupported: where the verdicts are appended.
        aside: returns whether the caller runs a case elsewhere; such cases are not yielded.
        recall: called with each built case, before its constraints are checked.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
    """
    for planned in plan:
        case = valid_case(planned, recall)
        reason = unsupported_reason(case, capabilities)
        if reason is None:
            if not aside(planned, case):
                yield case
        else:
            unsupported.append(not_asked(case, reason))
