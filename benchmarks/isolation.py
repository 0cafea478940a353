"""The cost of worker processes: the same cases with and without them. Runs inside the lab.

It prints the number of cases, the seconds in this process and in a worker, and the worker's startup
seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.workers.batch import run_batch
from dmlconf.workers.pool import BATCH, WorkerPool

BACKEND = "directml"


def here(cases: list[Case]) -> float:
    """Run the cases in this process, in batches of the same size."""
    backend = registry.create(registry.parse(BACKEND))
    began = time.perf_counter()
    for first in range(0, len(cases), BATCH):
        batch = cases[first : first + BATCH]
        assert len(list(run_batch(backend, batch))) == len(batch)
    seconds = time.perf_counter() - began
    backend.close()
    return seconds


def apart(cases: list[Case]) -> tuple[float, float]:
    """Run the cases in a worker; return the seconds of the run and of the startup."""
    began = time.perf_counter()
    with WorkerPool(registry.parse(BACKEND), 1, 60.0) as pool:
        pool.ready()
        started = time.perf_counter()
        given: Iterator[Case] = iter(cases)
        assert sum(1 for _ in pool.run(given)) == len(cases)
        return time.perf_counter() - started, started - began


def main() -> None:
    """Measure both in turn, twice."""
    cases = [build(planned) for planned in load_suite(list(map(Path, sys.argv[1:]))).plan()]
    # Compiled shaders are cached below DirectML, so only what follows this run is comparable.
    here(cases)
    for _ in range(2):
        inside = here(cases)
        outside, start = apart(cases)
        print(len(cases), round(inside, 4), round(outside, 4), round(start, 4), flush=True)


if __name__ == "__main__":
    main()
