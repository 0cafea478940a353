"""The backend and the number of jobs decide which processes run and judge cases.

If the user gives no number of jobs, it follows from the backend, the number of cases, and the
processors and the memory of the machine.

The tested code is in `dmlconf/workers/execution.py` and `dmlconf/workers/processors.py`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from dmlconf.backends.registry import parse
from dmlconf.workers.execution import Execution, Limits, execution_of, limits_of, processes_that_pay

NUMPY, FAULTY = parse("numpy"), parse("faulty:zeros")

MANY_CASES = 44_000
"""More than enough for eight processes, the most that there are by default."""


def pretend_machine(
    monkeypatch: pytest.MonkeyPatch, processors: int, mebibytes: int = 1 << 16
) -> None:
    """Pretend that this process may use this many processors and MiB of memory, without a quota."""
    monkeypatch.setattr("dmlconf.workers.processors.processor_quota", lambda: None)
    monkeypatch.setattr("dmlconf.workers.memory.machine_memory", lambda: mebibytes << 20)
    for name in ("cpu_count", "process_cpu_count"):
        monkeypatch.setattr(os, name, lambda: processors, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("judged", [True, False])
def test_backend_that_may_break_down_is_isolated(jobs: int, judged: bool) -> None:
    assert execution_of(FAULTY, Limits(jobs), judged=judged) is Execution.ISOLATED


def test_with_one_job_the_reference_runs_in_this_process() -> None:
    for judged in (True, False):
        assert execution_of(NUMPY, Limits(1), judged=judged) is Execution.IN_PROCESS


def test_workers_judge_only_in_runs_for_verdicts() -> None:
    assert execution_of(NUMPY, Limits(2), judged=True) is Execution.JUDGED_IN_WORKERS
    assert execution_of(NUMPY, Limits(2), judged=False) is Execution.ISOLATED


def test_there_is_a_process_for_every_2000_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_machine(monkeypatch, 4)
    assert [processes_that_pay(cases) for cases in (1, 3999, 4000, 6000)] == [1, 1, 2, 3]


def test_processes_are_at_most_the_processors_and_8(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for processors, processes in ((1, 1), (4, 4), (64, 8)):
        pretend_machine(monkeypatch, processors)
        assert processes_that_pay(MANY_CASES) == processes


def test_each_process_needs_400_mib_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for mebibytes, processes in ((300, 1), (799, 1), (800, 2)):
        pretend_machine(monkeypatch, 8, mebibytes)
        assert processes_that_pay(MANY_CASES) == processes


def test_without_a_temporary_folder_there_is_one_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> str:
        raise FileNotFoundError("no usable temporary folder")

    pretend_machine(monkeypatch, 4)
    assert processes_that_pay(MANY_CASES) > 1
    monkeypatch.setattr(tempfile, "gettempdir", fail)
    monkeypatch.setattr("dmlconf.workers.scratch._SHARED_MEMORY", tmp_path / "absent")
    assert processes_that_pay(MANY_CASES) == 1


def test_only_the_reference_has_several_processes_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_machine(monkeypatch, 4)
    assert limits_of(NUMPY, None, 5.0, MANY_CASES) == Limits(jobs=4, timeout=5.0)
    assert limits_of(FAULTY, None, 5.0, MANY_CASES) == Limits(jobs=1, timeout=5.0)


def test_given_number_of_jobs_overrides_the_default() -> None:
    # By default, 10 cases would have one process.
    assert limits_of(NUMPY, 2, 5.0, 10, 1 << 20) == Limits(2, 5.0, 1 << 20)
    assert limits_of(FAULTY, 3, 5.0, 10) == limits_of(NUMPY, 3, 5.0, 10) == Limits(3, 5.0)
