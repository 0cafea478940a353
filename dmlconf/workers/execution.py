"""Choose which processes execute and judge the cases of a run, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from dmlconf.backends.registry import BackendName
from dmlconf.workers.processors import usable_processors

__all__ = [
    "WORKER_MEMORY",
    "Execution",
    "Limits",
    "execution_of",
    "limits_of",
    "processes_that_pay",
]

WORKER_MEMORY: Final = 2048 << 20
"""Bytes by which a worker process may grow, unless the user says otherwise."""

_CASES: Final = 2000
"""The fewest cases for each of several processes: for fewer, starting a process does not pay."""

_PROCESS_BYTES: Final = 400 << 20
"""Bytes for each process: 150 MiB for Python, NumPy and the plan, and 250 MiB for a case."""

_MOST_PROCESSES: Final = 8
"""More processes would wait for the main process, which loads the suite and writes the log."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that a run may use.

    Attributes:
        jobs: worker processes side by side.
        timeout: seconds that one case may take in a worker process.
        memory: bytes by which a worker process may grow before it is replaced.
        second_tries: whether the cases of a process that broke down may run again before one of
            them is blamed. If not, the first case without an outcome is blamed.
    """

    jobs: int = 1
    timeout: float = 60.0
    memory: int = WORKER_MEMORY
    second_tries: bool = True


class Execution(Enum):
    """Where cases run, and where their outcomes are judged."""

    IN_PROCESS = "this process runs cases and judges them, except large ones"
    ISOLATED = "worker processes run cases, and this process judges them"
    JUDGED_IN_WORKERS = "worker processes run cases and judge them"


def execution_of(backend: BackendName, limits: Limits, *, judged: bool) -> Execution:
    """Choose how to execute cases on a backend.

    On a backend that need not be isolated, judging a case takes longer than running it. So with
    several jobs and `judged`, worker processes also judge.

    Args:
        judged: whether only verdicts are needed, and no outcomes.
    """
    if backend.isolated:
        return Execution.ISOLATED
    if limits.jobs == 1:
        return Execution.IN_PROCESS
    return Execution.JUDGED_IN_WORKERS if judged else Execution.ISOLATED


def limits_of(
    backend: BackendName,
    jobs: int | None,
    timeout: float,
    cases: int,
    memory: int = WORKER_MEMORY,
) -> Limits:
    """Return the resources for a run, with as many processes as are useful if no number is given.

    Args:
        backend: the backend; if it may break down, `jobs` is 1 by default.
        jobs: the number of processes that the user gave, or None.
        timeout: as in `Limits`; likewise `memory`.
        cases: how many cases the run has.
    """
    processes = jobs or (1 if backend.isolated else processes_that_pay(cases))
    return Limits(processes, timeout, memory)


def processes_that_pay(cases: int) -> int:
    """Return how many processes to use for this many cases if the user gives no number: 1 to 8.

    Without a temporary folder, which worker processes need, it is 1.
    """
    processes = max(1, min(_MOST_PROCESSES, usable_processors(), cases // _CASES))
    if processes > 1:
        # Small runs may not need these modules.
        from dmlconf.workers.memory import machine_memory
        from dmlconf.workers.scratch import temporary_folder

        processes = max(1, min(processes, machine_memory() // _PROCESS_BYTES))
        try:
            temporary_folder()
        except OSError:
            return 1
    return processes
