"""A process is replaced if it crashes, has grown, or is to run a case alone, and not more often.

In `faulty:crash,on==69]`, the value of the option `on` is `=69]`: the end of the identifier
`tile/many[Number=69]` of the case that crashes.

The tested code is in `dmlconf/workers/pool.py` and `dmlconf/workers/process.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import Breakdown, BreakdownKind, Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.workers.pool import BATCH, HOPELESS, REPEATS, WorkerPool
from tests.backends.installing import plugin
from tests.engine.cases import numbered_cases

pytestmark = pytest.mark.breakdown


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
    # Case 5 ran in the batch, then singly, then as the first case of a new process. If the outcomes
    # of cases 0 to 4 had arrived, it was the first case as soon as it ran singly.
    guilty = lost_before.pop(5)
    first = guilty[0]
    tries = 2 if first.together == 3 else 3
    assert [each.blamed for each in guilty] == [False] * (tries - 1) + [True]
    assert [each.together for each in guilty[1:]] == [1] * (tries - 1)
    assert guilty[-1].sequence == 1
    assert {each.kind for each in guilty} == {BreakdownKind.CRASH}
    # Cases without an outcome at the crash ran again, and were not blamed.
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
