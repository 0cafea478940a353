"""Worker processes: real ones, with backends that really crash and hang."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlconf.backends import registry
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind, Outcome, Outputs
from dmlconf.cases.build import build
from dmlconf.cases.model import Case
from dmlconf.runner.pool import WorkerPool
from tests.runner.cases import many


def run(
    directory: Path, backend: str, count: int, *, workers: int = 1, timeout: float = 60
) -> dict[int, Outcome]:
    """Return the outcomes by the number of the case."""
    plan = many(directory, count)
    with WorkerPool(registry.parse(backend), workers, timeout) as pool:
        pool.ready()
        outcomes = {
            case.identifier: outcome
            for case, outcome in pool.run(build(planned) for planned in plan)
        }
    return {number: outcomes[planned.identifier] for number, planned in enumerate(plan)}


def test_runs_every_case_once(tmp_path: Path) -> None:
    outcomes = run(tmp_path, "numpy", 100)
    for number, outcome in outcomes.items():
        assert isinstance(outcome, Outputs)
        assert outcome.arrays["OutputTensor"].tolist() == [number, number]


def test_runs_side_by_side(tmp_path: Path) -> None:
    outcomes = run(tmp_path, "numpy", 150, workers=2)
    assert len(outcomes) == 150
    assert all(isinstance(outcome, Outputs) for outcome in outcomes.values())


def test_a_crash_costs_one_case(tmp_path: Path) -> None:
    outcomes = run(tmp_path, "miniature:crash,on==7]", 40)
    broken = {n: o for n, o in outcomes.items() if isinstance(o, Breakdown)}
    assert list(broken) == [7]
    assert broken[7].kind is BreakdownKind.CRASH
    assert "SIGABRT" in broken[7].message or "exit code" in broken[7].message


def test_a_crash_keeps_what_the_process_said(tmp_path: Path) -> None:
    outcome = run(tmp_path, "miniature:crash", 1)[0]
    assert isinstance(outcome, Breakdown)
    assert "miniature: about to crash on tile/many[Number=0]" in outcome.diagnostics


def test_a_hang_costs_one_case(tmp_path: Path) -> None:
    outcomes = run(tmp_path, "miniature:hang,on==3]", 6, timeout=0.5)
    broken = {n: o for n, o in outcomes.items() if isinstance(o, Breakdown)}
    assert list(broken) == [3]
    assert broken[3].kind is BreakdownKind.HANG
    assert "0.5 seconds" in broken[3].message


def test_a_removed_device_costs_one_case(tmp_path: Path) -> None:
    outcomes = run(tmp_path, "miniature:device-removed,on==2]", 6)
    broken = {n: o for n, o in outcomes.items() if isinstance(o, Breakdown)}
    assert list(broken) == [2]
    assert broken[2].kind is BreakdownKind.DEVICE_REMOVED


def test_exceptions_cost_one_case_each(tmp_path: Path) -> None:
    outcomes = run(tmp_path, "miniature:error,on=1", 12)
    broken = {n: o for n, o in outcomes.items() if isinstance(o, Breakdown)}
    assert list(broken) == [1, 10, 11]
    assert "a mistake in the backend" in broken[1].message
    assert "Traceback" in broken[1].diagnostics


def test_out_of_memory_is_told_apart(tmp_path: Path) -> None:
    outcome = run(tmp_path, "miniature:out-of-memory", 1)[0]
    assert isinstance(outcome, Breakdown)
    assert outcome.kind is BreakdownKind.OUT_OF_MEMORY


def test_a_slow_backend_is_within_the_limit(tmp_path: Path) -> None:
    outcome = run(tmp_path, "miniature:slow", 1)[0]
    assert isinstance(outcome, Outputs)


def test_an_unusable_backend_is_told_of(tmp_path: Path) -> None:
    with (
        WorkerPool(registry.BackendName("miniature", "zeroes"), 1, 1.0) as pool,
        pytest.raises(BackendError, match="did you mean zeros"),
    ):
        pool.ready()


def test_reads_cases_only_as_workers_need_them(tmp_path: Path) -> None:
    plan = many(tmp_path, 1000)
    taken = []

    def cases() -> Iterator[Case]:
        for planned in plan:
            taken.append(planned)
            yield build(planned)

    with WorkerPool(registry.parse("numpy"), 1, 60) as pool:
        pool.ready()
        next(pool.run(cases()))
        assert len(taken) < 200
