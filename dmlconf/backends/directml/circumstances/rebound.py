"""The circumstance `rebound`."""

from __future__ import annotations

import ctypes

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.work import Step
from dmlconf.cases.model import Case

__all__ = ["exercise"]


def exercise(bench: Bench, case: Case) -> list[Dispatch]:
    """Bind the table to other memory, reset it and bind it back; then two tables take turns."""
    first, second = bench.site(case), bench.site(case)
    bench.initialize(first)
    bench.initialize(second)
    seen = bench.run(bench.variations(first, [0]))
    moved = first.moved(second.resources)
    moved.bind()
    seen += bench.run(bench.variations(moved, [1, 0]))
    first.table.call("Reset", ctypes.byref(first.desc))
    first.bind()
    steps: list[Step] = []
    for one, other in ((0, 1), (2, 0)):
        steps += bench.variations(first, [one]) + bench.variations(second, [other])
    return seen + bench.run(steps)
