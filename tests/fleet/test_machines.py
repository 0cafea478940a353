"""A run on workers of Dask loses no verdict if a worker dies; workers that differ are refused.

The tested code is in `dmlconf/fleet/cluster.py`, `dmlconf/fleet/dispatch.py`,
`dmlconf/fleet/target.py`, `dmlconf/fleet/service.py` and `dmlconf/cli/options/targets.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlconf.fleet.cluster import Cluster
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.cli.process import DMLCONF, beginning, dmlconf_here, environment, text_of, write
from tests.fleet.lab_backend import install
from tests.fleet.machines import Machines
from tests.fleet.suites import MATRIX, untimed

pytestmark = pytest.mark.fleet

DEADLY = MATRIX.replace("name: wrong", "name: deadly")
"""Three cases that pass, and one that kills the worker that runs it."""

LONG = MATRIX.replace("[0, 1, 2]", '"=range(60)"')
"""Sixty cases that the reference passes, and one that it fails."""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Start a scheduler; the workers that a test adds have the backend `lab`."""
    plugins = tmp_path / "plugins"
    install(plugins)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(plugins), before := os.environ.get("PYTHONPATH", "")))
    )
    try:
        with Machines(tmp_path) as lab:
            yield lab
    finally:
        os.environ["PYTHONPATH"] = before


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DMLCONF, "run", "tile.yaml", *arguments],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_local_cluster_writes_the_log_of_a_plain_run(
    tmp_path: Path,
) -> None:
    write(tmp_path, MATRIX)
    assert dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "one.jsonl").returncode == 1
    done = run(tmp_path, "--scheduler", "local:2", "--log", "many.jsonl")
    assert done.returncode == 1, done.stderr
    assert untimed(tmp_path / "many.jsonl") == untimed(tmp_path / "one.jsonl")
    log = read_log(tmp_path / "many.jsonl")
    assert [worker["name"] for worker in log.header.workers] == ["0", "1"]
    assert {verdict.execution.worker for verdict in log.verdicts} <= {"0", "1"}


def _raise(error: Exception) -> None:
    raise error


def test_os_error_of_a_call_keeps_the_worker() -> None:
    with Cluster("local:1") as cluster:
        while not cluster.workers:
            time.sleep(0.1)
        [worker] = cluster.workers
        for error in (OSError("the disk is full"), TimeoutError("no answer")):
            call = cluster.call(worker, _raise, error)
            answer = cluster.answer(60.0)
            assert answer is not None
            assert (answer.call, answer.lost) == (call, False)
            assert repr(answer.error) == repr(error)


def run_in_progress(folder: Path, machines: Machines) -> tuple[subprocess.Popen[str], Path]:
    """Start a run on a scheduler's workers; return it and its log, which has some verdicts."""
    options = ("-b", "lab", "--scheduler", machines.address, "--log", "many.jsonl")
    process = beginning(folder, "run", "tile.yaml", *options)
    log = folder / "many.jsonl"
    while text_of(log).count("\n") < 5:
        assert process.poll() is None
        time.sleep(0.05)
    return process, log


def test_killed_worker_loses_no_verdict(tmp_path: Path, machines: Machines) -> None:
    write(tmp_path, LONG)
    for name in ("lab-1", "lab-2"):
        machines.worker(name)
    machines.wait()
    process, log = run_in_progress(tmp_path, machines)
    victim = machines.worker_process("lab-1")
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "worker lab-1 " in errors, "the run was over before the worker was killed"
    assert run(tmp_path, "-b", "lab", "--log", "one.jsonl").returncode == 1
    assert untimed(log) == untimed(tmp_path / "one.jsonl")


def test_worker_killed_while_opening_its_backend_loses_no_verdict(
    tmp_path: Path, machines: Machines
) -> None:
    write(tmp_path, MATRIX)
    opened = tmp_path / "opened"
    machines.worker("lab-1", LAB_OPENED=str(opened))
    machines.wait()
    options = ("-b", "lab", "--scheduler", machines.address, "--log", "many.jsonl")
    process = beginning(tmp_path, "run", "tile.yaml", *options)
    while not opened.exists():
        assert process.poll() is None
        time.sleep(0.05)
    victim = machines.worker_process("lab-1")
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert read_log(tmp_path / "many.jsonl").complete


def test_case_that_ends_three_workers_is_broken(tmp_path: Path, machines: Machines) -> None:
    write(tmp_path, DEADLY)
    for name in ("lab-1", "lab-2"):
        machines.worker(name)
    done = run(tmp_path, "-b", "lab", "--scheduler", machines.address, "--log", "many.jsonl")
    assert done.returncode == 1, done.stderr
    verdicts = read_log(tmp_path / "many.jsonl").verdicts
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 3 + [Status.BROKEN]
    reason = verdicts[-1].reason
    assert reason is not None
    assert reason.kind is ReasonKind.CRASH
    assert reason.message.startswith("3 workers were lost while running it: lab-")


def test_different_adapters_need_the_option_by_adapter(tmp_path: Path, machines: Machines) -> None:
    write(tmp_path, MATRIX)
    machines.worker("lab-1", LAB_ADAPTER="Radeon 780M")
    machines.worker("lab-2", LAB_ADAPTER="Arc A770")
    options = ("-b", "lab", "--scheduler", machines.address, "--log", "run.jsonl")
    machines.wait()
    refused = run(tmp_path, *options)
    assert refused.returncode == 4
    assert "  lab-2: Arc A770, driver 32.0.1, lab 1" in refused.stderr
    assert "--by-adapter" in refused.stderr
    done = run(tmp_path, *options, "--by-adapter")
    assert done.returncode == 1, done.stderr
    logs = {path.name: read_log(path) for path in tmp_path.glob("run-*.jsonl")}
    assert set(logs) == {"run-radeon-780m-32.0.1.jsonl", "run-arc-a770-32.0.1.jsonl"}
    for log in logs.values():
        assert len(log.verdicts) == 4
        assert len(log.header.workers) == 1
        name, environment = log.header.workers[0]["name"], log.header.workers[0]["environment"]
        assert environment["adapter"] == {"lab-1": "Radeon 780M", "lab-2": "Arc A770"}[name]
    notes = tmp_path / "notes-arc-a770-32.0.1.txt"
    notes.write_text("My notes.\n", encoding="utf-8")
    refused = run(tmp_path, *options[:-1], "notes.txt", "--by-adapter")
    assert refused.returncode == 2
    assert "--log notes-arc-a770-32.0.1.txt is not a run log and would be" in refused.stderr
    assert notes.read_text("utf-8") == "My notes.\n"


def test_worker_with_another_suite_is_refused_by_name(tmp_path: Path, machines: Machines) -> None:
    write(tmp_path, MATRIX)
    other = tmp_path / "other"
    other.mkdir()
    write(other, MATRIX.replace("Two by two", "Twice"))
    machines.worker("lab-1", cwd=other)
    done = run(tmp_path, "-b", "lab", "--scheduler", machines.address, "--log", "run.jsonl")
    assert done.returncode == 4
    assert "worker lab-1" in done.stderr
    assert "its suite (tile.yaml) or catalogue differs from this machine's" in done.stderr
    assert not (tmp_path / "run.jsonl").exists()


def test_run_whose_scheduler_is_killed_can_be_resumed(tmp_path: Path, machines: Machines) -> None:
    write(tmp_path, LONG)
    machines.worker("lab-1")
    process, log = run_in_progress(tmp_path, machines)
    machines.scheduler.kill()
    _, errors = process.communicate(timeout=120)
    reached = [line for line in text_of(log).splitlines() if '"not run"' not in line]
    assert process.returncode == 6, errors
    assert f"the scheduler {machines.address} is gone" in errors
    resumed = run(tmp_path, "-b", "lab", "--resume", "many.jsonl")
    assert resumed.returncode == 1, resumed.stderr
    kept = reached[:-1]  # The last line is the footer.
    assert text_of(log).splitlines()[: len(kept)] == kept
    assert [verdict.status for verdict in read_log(log).verdicts].count(Status.PASSED) == 60
