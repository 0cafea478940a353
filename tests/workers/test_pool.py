"""Worker processes that crash or hang break few cases; an operator that only crashes is given up.

In `faulty:crash,on==7]`, the value of the option `on` is `=7]`: the end of the identifier
`tile/many[Number=7]` of the case that crashes.

The tested code is in `dmlconf/workers/pool.py`, `dmlconf/workers/process.py`,
`dmlconf/workers/worker.py`, `dmlconf/workers/memory.py` (how much processes may use) and
`dmlconf/backends/process_end.py`.
"""

from __future__ import annotations

import re
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import pytest

from dmlconf.backends import registry
from dmlconf.backends.process_start import INTERRUPTS
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind, Outcome, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.workers.interrupts import treat_termination_as_interrupt
from dmlconf.workers.pool import BATCH, HOPELESS, REPEATS, WorkerPool
from tests.backends.installing import plugin
from tests.engine.cases import numbered_cases
from tests.workers.processes import running

pytestmark = pytest.mark.breakdown


def run(
    directory: Path, backend: str, count: int, *, workers: int = 1, timeout: float = 60
) -> dict[int, Outcome]:
    """Run cases; return the outcomes by the number of the case, after a check that each has one."""
    plan = numbered_cases(directory, count)
    with WorkerPool(registry.parse(backend), workers, timeout) as pool:
        pool.ready()
        results = [
            (case.identifier, outcome)
            for case, outcome in pool.run(build(planned) for planned in plan)
        ]
    assert len(results) == count
    outcomes = dict(results)
    return {number: outcomes[planned.identifier] for number, planned in enumerate(plan)}


def breakdowns(outcomes: Mapping[int, Outcome]) -> dict[int, Breakdown]:
    return {n: outcome for n, outcome in outcomes.items() if isinstance(outcome, Breakdown)}


@pytest.mark.parametrize("workers", [1, 2])
def test_every_case_has_the_outcome_of_its_own_input(tmp_path: Path, workers: int) -> None:
    outcomes = run(tmp_path, "numpy", 150, workers=workers)
    for number, outcome in outcomes.items():
        assert isinstance(outcome, Outputs)
        assert outcome.arrays["OutputTensor"].tolist() == [number, number]


def test_a_crash_breaks_only_the_case_that_crashes(tmp_path: Path) -> None:
    broken = breakdowns(run(tmp_path, "faulty:crash,on==7]", 40))
    assert list(broken) == [7]
    assert broken[7].kind is BreakdownKind.CRASH
    assert "SIGABRT" in broken[7].message or "exit code" in broken[7].message


def test_crash_is_reported_with_messages_of_its_process(tmp_path: Path) -> None:
    outcome = run(tmp_path, "faulty:crash", 1)[0]
    assert isinstance(outcome, Breakdown)
    assert "faulty: about to crash on tile/many[Number=0]" in outcome.diagnostics


def test_a_hang_breaks_only_the_case_that_hangs(tmp_path: Path) -> None:
    broken = breakdowns(run(tmp_path, "faulty:hang,on==3]", 6, timeout=2))
    assert list(broken) == [3]
    assert broken[3].kind is BreakdownKind.HANG
    assert "2 seconds" in broken[3].message


def test_removed_device_breaks_only_its_case(tmp_path: Path) -> None:
    broken = breakdowns(run(tmp_path, "faulty:device-removed,on==2]", 6))
    assert list(broken) == [2]
    assert broken[2].kind is BreakdownKind.DEVICE_REMOVED


def test_an_exception_breaks_only_the_case_that_raises_it(tmp_path: Path) -> None:
    # The option `on=1` chooses the cases whose identifier has a 1 in it.
    broken = breakdowns(run(tmp_path, "faulty:error,on=1", 12))
    assert list(broken) == [1, 10, 11]
    assert "a mistake in the backend" in broken[1].message
    assert "Traceback" in broken[1].diagnostics


def test_a_lack_of_memory_is_distinguished_from_other_breakdowns(tmp_path: Path) -> None:
    outcome = run(tmp_path, "faulty:out-of-memory", 1)[0]
    assert isinstance(outcome, Breakdown)
    assert outcome.kind is BreakdownKind.OUT_OF_MEMORY


def test_a_slow_backend_within_the_time_limit_gives_outcomes(tmp_path: Path) -> None:
    outcome = run(tmp_path, "faulty:slow", 1)[0]
    assert isinstance(outcome, Outputs)


def test_a_backend_that_refuses_its_options_is_reported() -> None:
    with (
        WorkerPool(registry.BackendName("faulty", "zeroes"), 1, 1.0) as pool,
        pytest.raises(BackendError, match="did you mean zeros"),
    ):
        pool.ready()


def test_cases_are_not_built_before_workers_need_them(tmp_path: Path) -> None:
    plan = numbered_cases(tmp_path, 1000)
    taken_cases = []

    def cases() -> Iterator[Case]:
        for planned in plan:
            taken_cases.append(planned)
            yield build(planned)

    with WorkerPool(registry.parse("numpy"), 1, 60) as pool:
        pool.ready()
        next(pool.run(cases()))
        # Two batches, and a case to see if more follow.
        assert len(taken_cases) <= 2 * BATCH + 1


BATCH_BACKEND = '''
"""A backend that runs a batch as one, as a device does with one list of commands.

With the option `crash@=40]` it crashes, before any outcome, in each batch with a case that has
`=40]` in its identifier. It writes its process and the identifiers of each batch into a file.
"""

import os
import re
import sys
import time

from dmlconf.backends.numpy.backend import create as reference, run_case
from dmlconf.backends.protocol import Breakdown, BreakdownKind


class Together:
    def __init__(self, options):
        self.fault, _, self.part = options.partition("@")
        self.environment = reference("").environment
        self.capabilities = reference("").capabilities

    def close(self):
        pass

    def run(self, cases):
        with open(os.environ["TOGETHER_LOG"], "a") as log:
            log.write(f"{os.getpid()} {' '.join(case.identifier for case in cases)}\\n")
        if any(self.part in case.identifier for case in cases):
            if self.fault == "crash":
                os.abort()
            if self.fault == "hang":
                time.sleep(3600)
            if self.fault == "raise":
                raise RuntimeError("something in the batch is wrong")
            if self.fault == "removed":
                yield from [Breakdown(BreakdownKind.DEVICE_REMOVED, "gone")] * len(cases)
                return
            if self.fault == "waited":
                yield from [Breakdown(BreakdownKind.HANG, "never done")] * len(cases)
                return
        yield from [run_case(case) for case in cases]


create = Together
'''


@pytest.fixture
def together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the plugin `together`; return its file, with a line for each batch."""
    plugin(tmp_path, monkeypatch, "together", BATCH_BACKEND)
    log = tmp_path / "together.txt"
    monkeypatch.setenv("TOGETHER_LOG", str(log))
    return log


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("crash", BreakdownKind.CRASH),
        ("hang", BreakdownKind.HANG),
        ("removed", BreakdownKind.DEVICE_REMOVED),
        ("waited", BreakdownKind.HANG),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_broken_batch_breaks_only_the_case_at_fault(
    tmp_path: Path, together: Path, fault: str, kind: BreakdownKind, workers: int
) -> None:
    backend = f"together:{fault}@=40]"
    broken = breakdowns(run(tmp_path, backend, 70, workers=workers, timeout=2))
    assert list(broken) == [40]
    assert broken[40].kind is kind
    calls = [line.split() for line in together.read_text("utf-8").splitlines()]
    with_fault = [call for call in calls if any(each.endswith("=40]") for each in call[1:])]
    # The case ran in its batch, then singly, then first in a new process, if it was not yet first.
    counts = [len(call) - 1 for call in with_fault]
    assert counts == [BATCH, 1, 1] or (workers == 2 and counts == [BATCH, 1])
    assert len({call[0] for call in with_fault}) == len(with_fault)
    alone = with_fault[-1][0]
    assert [call[0] for call in calls].count(alone) == 1
    assert max(len(call) - 1 for call in calls) == BATCH


def test_both_cases_at_fault_in_a_batch_are_found(tmp_path: Path, together: Path) -> None:
    broken = breakdowns(run(tmp_path, "together:crash@0]", 2 * BATCH))
    assert list(broken) == [0, 10, 20, 30]  # The first batch ends with case 15.
    processes = {line.split()[0] for line in together.read_text("utf-8").splitlines()}
    # Each of the 2 batches ends a process, and each case at fault at most two.
    assert len(processes) <= 2 + 2 * len(broken)


def test_exception_of_a_batch_breaks_only_its_case(tmp_path: Path, together: Path) -> None:
    broken = breakdowns(run(tmp_path, "together:raise@=5]", 40))
    assert list(broken) == [5]
    assert "something in the batch is wrong" in broken[5].message
    assert len({line.split()[0] for line in together.read_text("utf-8").splitlines()}) == 1


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
        if os.fork() == 0:
            open(os.environ["MARKS_FOLDER"] + "/child", "w").write(str(os.getpid()))
            time.sleep(600)
            os._exit(0)

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


GROWING_BACKEND: Final = '''
"""A backend that keeps 8 MiB of each batch until it is closed."""

import os

from dmlconf.backends.numpy.backend import NumpyBackend


class Keeps(NumpyBackend):
    def __init__(self, options):
        self.kept = []

    def run(self, cases):
        self.kept.append(os.urandom(8 << 20))
        return super().run(cases)


create = Keeps
'''


@pytest.mark.parametrize(("mebibytes", "processes"), [(4, 3), (12, 2), (64, 1)])
def test_worker_that_grows_beyond_the_limit_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mebibytes: int, processes: int
) -> None:
    plugin(tmp_path, monkeypatch, "keeps", GROWING_BACKEND)
    # After its batches, a process has grown by 8, 16 and 24 MiB.
    plan = numbered_cases(tmp_path, 3 * BATCH)
    with WorkerPool(registry.parse("keeps"), 1, 60, memory=mebibytes << 20) as pool:
        pool.ready()
        outcomes = [outcome for _, outcome in pool.run(build(planned) for planned in plan)]
        assert pool.started == processes
    assert [type(outcome) for outcome in outcomes] == [Outputs] * 3 * BATCH


@needs_signals
def test_a_backend_that_hangs_as_it_closes_is_ended(tmp_path: Path, unruly: Path) -> None:
    began = monotonic()
    assert len(run(tmp_path, "unruly:hangs as it closes", 3)) == 3
    assert monotonic() - began < AT_ONCE


RECOVERING_BACKEND: Final = '''
"""A backend that loses its device in the case 1 and yet runs the cases after it."""

import time

from dmlconf.backends.numpy.backend import NumpyBackend
from dmlconf.backends.protocol import Breakdown, BreakdownKind


class Recovers(NumpyBackend):
    def __init__(self, options):
        pass

    def run(self, cases):
        for case, outcome in zip(cases, super().run(cases), strict=True):
            time.sleep(0.03)  # Each outcome has a message of its own.
            loses_device = case.identifier.endswith("=1]")
            yield Breakdown(BreakdownKind.DEVICE_REMOVED, "removed") if loses_device else outcome


create = Recovers
'''


def test_interrupt_after_a_lost_device_mixes_no_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, monkeypatch, "recovers", RECOVERING_BACKEND)
    handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
    names: list[str] = []
    plan = numbered_cases(tmp_path, 4)

    def interrupted_run(pool: WorkerPool) -> None:
        for case, _ in pool.run(build(planned) for planned in plan):
            names.append(case.identifier)
            sleep(1)  # Meanwhile, the worker sends all outcomes.
            signal.raise_signal(signal.SIGINT)

    treat_termination_as_interrupt()
    try:
        with WorkerPool(registry.parse("recovers"), 1, 60) as pool:
            pool.ready()
            with pytest.raises(KeyboardInterrupt):
                interrupted_run(pool)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert names == ["tile/many[Number=0]"]


def processes_started(directory: Path, backend: str, count: int, **how: Any) -> int:
    """Return how many processes a pool of one worker starts; `how` is given to its `run`."""
    plan = numbered_cases(directory, count)
    with WorkerPool(registry.parse(backend), 1, 60) as pool:
        pool.ready()
        list(pool.run((build(planned) for planned in plan), **how))
        return pool.started


def test_each_case_alone_has_a_process_of_its_own(tmp_path: Path) -> None:
    def alone(case: Case) -> bool:
        return case.identifier.endswith("=1]")

    assert processes_started(tmp_path, "numpy", 4) == 1
    assert processes_started(tmp_path, "numpy", 4, alone=alone) == 2
    assert processes_started(tmp_path, "numpy", 1, alone=lambda case: True) == 1
    assert processes_started(tmp_path, "numpy", 3, alone=lambda case: True) == 3


def test_case_that_runs_alone_comes_last(
    tmp_path: Path,
) -> None:
    def alone(case: Case) -> bool:
        return case.identifier.endswith("=40]")

    assert processes_started(tmp_path, "numpy", 100, alone=alone) == 2


def test_crash_of_a_case_alone_loses_no_outcome(tmp_path: Path) -> None:
    plan = numbered_cases(tmp_path, 70)
    with WorkerPool(registry.parse("faulty:crash,on==69]"), 2, 60) as pool:
        pool.ready()
        cases = (build(planned) for planned in plan)
        # The cases whose number ends in 0 or 9 run alone.
        outcomes = {
            case.identifier: outcome
            for case, outcome in pool.run(cases, lambda case: case.identifier[-2] in "09")
        }
    assert set(outcomes) == {planned.identifier for planned in plan}
    broken = [name for name, outcome in outcomes.items() if isinstance(outcome, Breakdown)]
    assert broken == ["tile/many[Number=69]"]


def test_operator_with_three_crashes_is_not_run_alone(
    tmp_path: Path,
) -> None:
    # Cases 5, 15, 25 and so on crash, and the others pass.
    plan = numbered_cases(tmp_path, 60)
    with WorkerPool(registry.parse("faulty:crash,on=5]"), 1, 60) as pool:
        pool.ready()
        outcomes = {
            case.identifier: outcome
            for case, outcome in pool.run(build(planned) for planned in plan)
        }
        started = pool.started
    broken = [name for name, outcome in outcomes.items() if isinstance(outcome, Breakdown)]
    assert len(outcomes) == 60
    assert broken == [f"tile/many[Number={number}]" for number in (5, 15, 25, 35, 45, 55)]
    # Processes: 1 at first, 1 after each of 4 dead batches and of 6 crashes, and REPEATS to run
    # cases again.
    assert started <= 1 + 4 + 6 + REPEATS


def test_outcome_lists_the_processes_lost_before_it(tmp_path: Path) -> None:
    with WorkerPool(registry.parse("faulty:crash,on=5]"), 1, 60) as pool:
        pool.ready()
        ran = {
            int(case.identifier.partition("=")[2].rstrip("]")): pool.latest
            for case, _ in pool.run(build(planned) for planned in numbered_cases(tmp_path, 8))
        }
    lost_before = {
        number: each.lost for number, each in ran.items() if each is not None and each.lost
    }
    # Case 5 ran in the batch, then singly, then as the first case of a new process.
    guilty = lost_before.pop(5)
    assert [each.blamed for each in guilty] == [False, False, True]
    assert [each.together for each in guilty[1:]] == [1, 1]
    assert guilty[2].sequence == 1
    assert {each.kind for each in guilty} == {BreakdownKind.CRASH}
    # Cases without an outcome at the crash ran again, and were not blamed.
    first = guilty[0]
    assert {number: [each.process for each in lost] for number, lost in lost_before.items()} == {
        number: [first.process] for number in range(8 - first.together, 8) if number != 5
    }
    assert not any(each.blamed for lost in lost_before.values() for each in lost)


@pytest.mark.parametrize("alone", [False, True])
def test_an_operator_that_only_crashes_is_given_up(tmp_path: Path, alone: bool) -> None:
    plan = numbered_cases(tmp_path, 40)
    with WorkerPool(registry.parse("faulty:crash"), 2, 60) as pool:
        pool.ready()
        cases = (build(planned) for planned in plan)
        outcomes = [outcome for _, outcome in pool.run(cases, lambda case: alone)]
        # A process for each crash, and a few at first.
        assert pool.started <= HOPELESS + 5
    assert len(outcomes) == 40
    assert all(isinstance(outcome, Breakdown) for outcome in outcomes)
    assert {outcome.kind for outcome in outcomes} == {BreakdownKind.CRASH}
    ran = [outcome for outcome in outcomes if "not run" not in outcome.message]
    # Each of the two workers may have begun another case.
    assert HOPELESS <= len(ran) <= HOPELESS + 2


def test_process_that_ends_at_its_start_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, monkeypatch, "dies", "import os\ndef create(options): os._exit(7)\n")
    with (
        WorkerPool(registry.BackendName("dies", ""), 1, 60) as pool,
        pytest.raises(BackendError, match="its process ended with exit code 7 at the start"),
    ):
        pool.ready()
