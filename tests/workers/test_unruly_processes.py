"""A process that breaks down at its start, between batches or at its end breaks no other case.

What it printed and how it ended is reported, and it leaves nothing behind.

The tested code is in `dmlconf/workers/pool.py`, `dmlconf/workers/process.py`,
`dmlconf/workers/memory.py` (how much processes may use) and `dmlconf/backends/process_end.py`.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from itertools import islice
from pathlib import Path
from time import monotonic

import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind, Outputs
from dmlconf.cases.building.build import build
from dmlconf.workers.pool import BATCH, WorkerPool
from tests.backends.installing import plugin
from tests.engine.cases import numbered_cases
from tests.workers.pools import breakdowns, run
from tests.workers.processes import running

pytestmark = pytest.mark.breakdown


UNRULY_BACKEND = '''
"""A backend whose process breaks down as the option says.

That may be as it starts, at case 40, after the last outcome of a batch, or as it closes. What is to
happen once leaves a file in the folder for marks.
"""

import os
import shutil
import signal
import threading
import time

from dmlconf.backends.numpy.backend import create as reference, run_case


class Unruly:
    def __init__(self, fault):
        self.fault = fault
        self.environment = reference("").environment
        self.capabilities = reference("").capabilities
        first = self.first("started")
        if fault == "second start fails" and not first:
            if self.first("failed"):
                os.abort()
        if fault == "no further start" and not first:
            os.abort()
        if fault == "has no capabilities":
            self.capabilities = self.fail
        if fault == "forks and dies at the start":
            self.fork()
            os.kill(os.getpid(), signal.SIGKILL)

    def first(self, what):
        """Return whether no process has asked this before, and leave a mark that one has."""
        try:
            os.close(os.open(os.environ["MARKS_FOLDER"] + "/" + what, os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            return False

    def fork(self):
        """Start a child that has this process's pipe and lives on for ten minutes."""
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        # The child itself could be ended before it has written this.
        open(os.environ["MARKS_FOLDER"] + "/child", "w").write(str(child))

    def fail(self):
        raise ValueError("no device answers")

    def close(self):
        self.first("closed")
        if self.fault == "hangs as it closes":
            time.sleep(600)

    def run(self, cases):
        if self.fault == "loses its folder":
            shutil.rmtree(os.path.dirname(os.readlink("/proc/self/fd/2")))
            os.abort()
        for case in cases:
            if "=40]" in case.identifier:
                if self.fault == "forks and dies":
                    self.fork()
                    os.kill(os.getpid(), signal.SIGKILL)
                if self.fault in ("second start fails", "no further start"):
                    os.abort()
                if self.fault == "floods":
                    for _ in range(3000):
                        os.write(2, b"x" * 9999 + bytes([10]))
                    os.write(1, b"printed" + bytes([10]))
                    os.abort()
            yield run_case(case)
        if self.fault == "dies between batches" and self.first("died"):
            threading.Timer(0.05, os._exit, [3]).start()
            time.sleep(0.02)
        if self.fault == "hangs between batches" and self.first("hung"):
            time.sleep(600)


create = Unruly
'''


@pytest.fixture
def unruly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the plugin `unruly`; return the folder in which its processes leave marks."""
    plugin(tmp_path, monkeypatch, "unruly", UNRULY_BACKEND)
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("MARKS_FOLDER", str(marks))
    return marks


def test_a_backend_whose_capabilities_fail_is_refused_and_closed(unruly: Path) -> None:
    with (
        WorkerPool(registry.parse("unruly:has no capabilities"), 1, 60) as pool,
        pytest.raises(BackendError, match="no device answers"),
    ):
        pool.ready()
    assert (unruly / "closed").exists()


needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

AT_ONCE = 100
"""Seconds; waiting for the child, for the timeout or for a start takes 600, 300 or 120."""


@needs_signals
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fault", ["dies between batches", "hangs between batches"])
def test_breakdown_after_the_last_outcome_breaks_no_case(
    tmp_path: Path, unruly: Path, fault: str, workers: int
) -> None:
    outcomes = run(tmp_path, f"unruly:{fault}", 70, workers=workers, timeout=2)
    mark = "died" if fault.startswith("dies") else "hung"
    # With two workers, the other one closes its backend.
    assert {path.name for path in unruly.iterdir()} - {"closed"} == {"started", mark}
    assert all(isinstance(outcome, Outputs) for outcome in outcomes.values())


@needs_signals
def test_crash_is_noticed_while_a_child_holds_the_pipe(tmp_path: Path, unruly: Path) -> None:
    began = monotonic()
    broken = breakdowns(run(tmp_path, "unruly:forks and dies", 70, timeout=300))
    assert monotonic() - began < AT_ONCE
    assert list(broken) == [40]
    assert broken[40].kind is BreakdownKind.CRASH
    assert not running(int((unruly / "child").read_text("utf-8")))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_crash_is_reported_though_its_messages_were_removed(tmp_path: Path, unruly: Path) -> None:
    broken = breakdowns(run(tmp_path, "unruly:loses its folder", 1))
    assert broken[0].kind is BreakdownKind.CRASH
    assert broken[0].diagnostics == ""


@needs_signals
def test_killed_process_is_reported_with_usable_memory(tmp_path: Path, unruly: Path) -> None:
    broken = breakdowns(run(tmp_path, "unruly:forks and dies", 41))
    assert "died of SIGKILL; the system does so when memory runs out" in broken[40].message
    assert re.search(r"here processes may use [\d.,]+ [MGT]iB", broken[40].message)


@needs_signals
def test_worker_that_dies_at_its_start_is_reported(tmp_path: Path, unruly: Path) -> None:
    began = monotonic()
    with (
        WorkerPool(registry.parse("unruly:forks and dies at the start"), 1, 1.0) as pool,
        pytest.raises(BackendError, match="died of SIGKILL at the start"),
    ):
        pool.ready()
    assert monotonic() - began < AT_ONCE


@needs_signals
@pytest.mark.parametrize("workers", [1, 2])
def test_a_replacement_that_does_not_start_is_tried_again(
    tmp_path: Path, unruly: Path, workers: int
) -> None:
    broken = breakdowns(run(tmp_path, "unruly:second start fails", 70, workers=workers))
    assert (unruly / "failed").exists()
    assert list(broken) == [40]


@needs_signals
def test_three_failed_starts_in_a_row_end_the_run(tmp_path: Path, unruly: Path) -> None:
    plan = numbered_cases(tmp_path, 70)
    with WorkerPool(registry.parse("unruly:no further start"), 1, 5) as pool:
        pool.ready()
        results = pool.run(build(planned) for planned in plan)
        assert len(list(islice(results, BATCH))) == BATCH
        with pytest.raises(BackendError, match="3 processes in a row did not start"):
            deque(results, maxlen=0)


LONGEST_DIAGNOSTICS = 8192
"""Characters; the fault `floods` writes 30 million."""


@needs_signals
def test_long_output_is_shortened_and_not_printed(
    tmp_path: Path, unruly: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = run(tmp_path, "unruly:floods", 41)[40]
    assert isinstance(outcome, Breakdown)
    assert outcome.diagnostics.endswith("printed")
    assert len(outcome.diagnostics) <= LONGEST_DIAGNOSTICS
    assert capfd.readouterr().out == ""


@needs_signals
def test_a_backend_that_hangs_as_it_closes_is_ended(tmp_path: Path, unruly: Path) -> None:
    began = monotonic()
    assert len(run(tmp_path, "unruly:hangs as it closes", 3)) == 3
    assert monotonic() - began < AT_ONCE


def test_process_that_ends_at_its_start_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, monkeypatch, "dies", "import os\ndef create(options): os._exit(7)\n")
    with (
        WorkerPool(registry.BackendName("dies", ""), 1, 60) as pool,
        pytest.raises(BackendError, match="its process ended with exit code 7 at the start"),
    ):
        pool.ready()
