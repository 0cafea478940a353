"""A case that crashes, hangs or raises breaks down, and every other case has its own outcome.

In `faulty:crash,on==7]`, the value of the option `on` is `=7]`: the end of the identifier
`tile/many[Number=7]` of the case that crashes.

The tested code is in `dmlconf/workers/pool.py`, `dmlconf/workers/process.py`,
`dmlconf/workers/worker.py` and `dmlconf/backends/process_end.py`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Final

import pytest

from dmlconf.backends import registry
from dmlconf.backends.process_start import INTERRUPTS
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.workers.interrupts import treat_termination_as_interrupt
from dmlconf.workers.pool import BATCH, WorkerPool
from tests.backends.installing import plugin
from tests.engine.cases import numbered_cases
from tests.workers.pools import breakdowns, run

pytestmark = pytest.mark.breakdown


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
        treat_termination_as_interrupt()  # Forget the interrupt, which would end later runs.
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert names == ["tile/many[Number=0]"]
