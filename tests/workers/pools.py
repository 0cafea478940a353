"""Run numbered cases in a pool of worker processes, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.backends.protocol import Breakdown, Outcome
from dmlconf.cases.building.build import build
from dmlconf.workers.pool import WorkerPool
from tests.engine.cases import numbered_cases

__all__ = ["breakdowns", "run"]


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
