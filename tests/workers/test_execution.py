"""Cases run and are judged in the right processes, by backend, number of jobs and memory.

The tested code is in `dmlconf/workers/execution.py`, `dmlconf/workers/processors.py` and
`dmlconf/workers/memory.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmlconf.backends.registry import parse
from dmlconf.workers.control_groups import processor_quota
from dmlconf.workers.execution import Execution, Limits, execution_of, limits_of, processes_that_pay
from tests.cli.process import environment

NUMPY, FAULTY = parse("numpy"), parse("faulty:zeros")


def machine(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    """Let the operating system report this number of processors."""
    if processor_quota() is not None:
        pytest.skip("a quota of this container limits processors")
    for name in ("cpu_count", "process_cpu_count"):
        monkeypatch.setattr(os, name, lambda: processors, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("judged", [True, False])
def test_a_backend_that_may_break_down_is_isolated(jobs: int, judged: bool) -> None:
    assert execution_of(FAULTY, Limits(jobs), judged=judged) is Execution.ISOLATED


def test_with_one_job_the_reference_runs_in_this_process() -> None:
    for judged in (True, False):
        assert execution_of(NUMPY, Limits(1), judged=judged) is Execution.IN_PROCESS


def test_workers_judge_only_if_nothing_but_verdicts_is_wanted() -> None:
    assert execution_of(NUMPY, Limits(2), judged=True) is Execution.JUDGED_IN_WORKERS
    assert execution_of(NUMPY, Limits(2), judged=False) is Execution.ISOLATED


def test_few_cases_need_no_further_process(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 4)
    assert [processes_that_pay(cases) for cases in (1, 3999, 4000, 44_000)] == [1, 1, 2, 4]
    machine(monkeypatch, 64)
    assert processes_that_pay(44_000) == 8


def test_little_memory_has_room_for_few_processes(tmp_path: Path) -> None:
    count = "from dmlconf.workers.execution import processes_that_pay as n; print(n(44_000))"
    for mebibytes, most in ((500, 1), (900, 2)):
        env = environment(tmp_path, DMLCONF_MEMORY_MIB=str(mebibytes))
        done = subprocess.check_output([sys.executable, "-c", count], env=env, text=True)
        assert 1 <= int(done) <= most


def test_the_number_of_jobs_that_a_user_gives_overrides_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, 4)
    assert limits_of(NUMPY, None, 5.0, 44_000) == Limits(4, 5.0)
    assert limits_of(FAULTY, None, 5.0, 44_000) == Limits(1, 5.0)
    assert limits_of(NUMPY, 2, 5.0, 10, 1 << 20) == Limits(2, 5.0, 1 << 20)
    assert limits_of(FAULTY, 3, 5.0, 10) == limits_of(NUMPY, 3, 5.0, 10) == Limits(3, 5.0)
