"""Run a plan in the processes that `dmlconf.workers.execution` chooses, and yield verdicts."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from dmlconf.backends.protocol import Capabilities
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cases.selecting.selection import LARGE_TAG
from dmlconf.engine.against import Expectations
from dmlconf.engine.session import OpenBackend, judged
from dmlconf.judging.conclusion import NO_OPTIONS, JudgeOptions
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Execution, Limits, execution_of
from dmlconf.workers.memory import may_take_much

__all__ = ["compares_unfused", "verdicts"]


def compares_unfused(given: bool | None, capabilities: Capabilities) -> bool:
    """Return whether graphs' nodes also run one by one.

    Args:
        given: the user's choice; None means yes if the backend compiles graphs.
    """
    return capabilities.compiles_graphs if given is None else given


def verdicts(
    plan: Sequence[PlannedCase],
    backend: OpenBackend,
    expected: Expectations,
    limits: Limits,
    options: JudgeOptions = NO_OPTIONS,
) -> Generator[Verdict, None, None]:
    """Return an iterator that runs the plan and yields each verdict as it is reached.

    Args:
        backend: the backend, opened with `judged=True`.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a process could not be started, or a recording cannot be read.
    """
    if backend.variants:
        from dmlconf.engine.variants import judged_variants  # Few runs need it.

        return judged_variants(plan, backend, expected.against, options)
    execution = execution_of(backend.name, limits, judged=True)
    if execution is Execution.ISOLATED:
        return judged(plan, backend, expected.against, options)
    if execution is Execution.IN_PROCESS:
        return _judged_here(plan, backend, expected, limits, options)
    # Importing processes and pipes takes time.
    from dmlconf.engine.parallel import judged_in_processes

    return judged_in_processes(plan, backend.name, expected, limits, options)


def _judged_here(
    plan: Sequence[PlannedCase],
    backend: OpenBackend,
    expected: Expectations,
    limits: Limits,
    options: JudgeOptions,
) -> Generator[Verdict, None, None]:
    """Run the plan in this process, and then its large cases in worker processes."""
    large: list[PlannedCase] = []

    def aside(planned: PlannedCase, case: Case) -> bool:
        if LARGE_TAG in planned.template.tags or may_take_much(case):
            large.append(planned)
            return True
        return False

    yield from judged(plan, backend, expected.against, options, aside)
    if large:
        from dmlconf.engine.parallel import judged_in_processes

        yield from judged_in_processes(large, backend.name, expected, limits, options)
