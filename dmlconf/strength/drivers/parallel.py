"""Measures driver defects in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from dmlconf.cases.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.runner.against import suite_expectations
from dmlconf.runner.judge import Against
from dmlconf.strength.drivers.catalogue import DriverDefect, driver_defects
from dmlconf.strength.drivers.measure import DriverStrength, measure_case
from dmlconf.strength.drivers.survey import Subject, Survey, survey

__all__ = ["measure_drivers"]

_CHUNK: Final = 50
"""Cases that a process takes at a time."""

_Try = tuple[PlannedCase, list[Subject]]


def measure_drivers(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    sample: int | None = None,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
    defects: Sequence[DriverDefect] | None = None,
) -> tuple[Survey, DriverStrength]:
    """Return what the cases meet, and what they notice.

    Args:
        plan: the cases.
        suite_paths: where the suite was loaded from.
        jobs: how many processes; 1 measures in this one.
        sample: how many cases at most each defect of an operator is tried on; None for all.
        seed: of the choice of these.
        advance: is called after each case.
        defects: what to try, of `driver_defects` (all of these where None) or `size_defects`.

    Raises:
        InvalidFilesError: a case of a matrix cannot be built.
        BackendError: a recording of the suite cannot be read.
    """
    overview = survey(map(valid_case, plan), driver_defects() if defects is None else defects)
    tries = [(plan[place], list(s)) for place, s in overview.chosen(sample, seed).items()]
    strength = DriverStrength()
    if jobs == 1:
        against, _ = suite_expectations(suite_paths)
        strength.add(_measured(tries, against, advance))
        return overview, strength
    chunks = [tries[start : start + _CHUNK] for start in range(0, len(tries), _CHUNK)]
    with ProcessPoolExecutor(jobs, get_context("spawn"), _Worker.start, (suite_paths,)) as pool:
        for chunk, part in zip(chunks, pool.map(_Worker.measure, chunks), strict=True):
            strength.add(part)
            for _ in chunk:
                advance()
    return overview, strength


def _measured(
    tries: Sequence[_Try], against: Against, advance: Callable[[], None] = lambda: None
) -> DriverStrength:
    strength = DriverStrength()
    for planned, subjects in tries:
        measure_case(strength, valid_case(planned), subjects, against)
        advance()
    return strength


class _Worker:
    """What a worker process keeps from chunk to chunk."""

    against: Against

    @classmethod
    def start(cls, suite_paths: Sequence[Path]) -> None:
        cls.against, _ = suite_expectations(suite_paths)

    @classmethod
    def measure(cls, chunk: Sequence[_Try]) -> DriverStrength:
        return _measured(chunk, cls.against)
