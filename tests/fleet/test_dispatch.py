"""A worker that restarts is used again; one with a device that is new to the run is refused.

The tested code is in `dmlconf/fleet/dispatch.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.excuses.waivers import NO_WAIVERS
from dmlconf.fleet import dispatch
from dmlconf.fleet.cluster import Answer, Cluster, WorkerInfo
from dmlconf.fleet.dispatch import Fleet
from dmlconf.fleet.service import Job, Prepared, finish
from tests.cli.process import write
from tests.fleet.suites import MATRIX, job_of


class LocalWorkers(Cluster):
    """Workers whose calls run in this process; `a:1` and `a:2` have the same device, `a`."""

    def __init__(self, *addresses: str) -> None:
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._calls = 0
        self._address = "tcp://lab:8786"
        self._workers = {each: WorkerInfo(each, each, 1) for each in addresses}

    @property
    def alive(self) -> bool:
        return True

    def join(self, address: str) -> None:
        self._workers = {**self._workers, address: WorkerInfo(address, address, 1)}

    def restart(self, old: str, new: str) -> None:
        self._workers = {each: info for each, info in self._workers.items() if each != old}
        self.join(new)

    def call(self, worker: str, function: Callable[..., Any], *arguments: Any) -> int:
        self._calls += 1
        value = function(*arguments)
        if isinstance(value, Prepared):
            value = replace(value, record={**value.record, "adapter": worker[0]})
        self._futures[self._calls] = value
        self._answers.put(Answer(self._calls, worker, value))
        return self._calls


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    yield job_of(write(tmp_path, MATRIX))
    finish("job")


@pytest.fixture
def plan(job: Job) -> list[PlannedCase]:
    return list(load_suite([Path(path) for path in job.paths]).plan())


@pytest.fixture(autouse=True)
def _no_wait_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run end at once if no worker is left."""
    monkeypatch.setattr(dispatch, "_WITHOUT_WORKERS_SECONDS", 0.0)


def test_restarted_worker_runs_the_rest_and_the_next_plan(
    job: Job, plan: list[PlannedCase]
) -> None:
    workers = LocalWorkers("a:1")
    fleet = Fleet(workers, job)
    members = fleet.prepare()
    first = fleet.verdicts(plan, members, NO_WAIVERS)
    next(first)
    workers.restart("a:1", "a:2")
    assert [verdict.execution.worker for verdict, _ in first] == ["a:2"] * 3
    later = fleet.verdicts(plan, members, NO_WAIVERS)
    assert [verdict.execution.worker for verdict, _ in later] == ["a:2"] * 4


def test_worker_restarted_during_another_run_is_not_refused(
    job: Job, plan: list[PlannedCase]
) -> None:
    workers = LocalWorkers("a:1", "b:1")
    troubles: list[str] = []
    fleet = Fleet(workers, job, troubles.append)
    one, other = fleet.prepare()
    workers.restart("b:1", "b:2")
    first = fleet.verdicts(plan, [one], NO_WAIVERS)
    assert [verdict.execution.worker for verdict, _ in first] == ["a:1"] * 4
    assert troubles == []
    later = fleet.verdicts(plan, [other], NO_WAIVERS)
    assert [verdict.execution.worker for verdict, _ in later] == ["b:2"] * 4


def test_new_worker_with_a_new_device_is_refused(job: Job, plan: list[PlannedCase]) -> None:
    workers = LocalWorkers("a:1")
    troubles: list[str] = []
    fleet = Fleet(workers, job, troubles.append)
    members = fleet.prepare()
    workers.join("c:1")
    verdicts = fleet.verdicts(plan, members, NO_WAIVERS)
    assert [verdict.execution.worker for verdict, _ in verdicts] == ["a:1"] * 4
    assert troubles == [
        "worker c:1 (c:1) cannot be used: "
        "its adapter, driver or DirectML differs from that of the run"
    ]
