"""Measure which driver defects a suite catches, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.engine.against import suite_expectations
from dmlconf.judging.judge import Against
from dmlconf.strength.drivers.applicability import Applicability, OperatorDefect, applicability_of
from dmlconf.strength.drivers.catalogue import DriverDefect, driver_defects
from dmlconf.strength.drivers.figure import FEW, tells_few
from dmlconf.strength.drivers.measure import (
    DriverStrength,
    DriverTally,
    defects_by_name,
    measure_case,
)
from dmlconf.workers.mapping import ItemMap, in_processes

__all__ = ["measure_drivers"]

_CHUNK: Final = 50
"""The most cases that a process takes at a time."""

_CHUNK_OF_CONDITIONS: Final = 200
"""The most cases that a process takes at a time to look at the conditions of defects."""

_Try = tuple[PlannedCase, list[OperatorDefect]]


def measure_drivers(
    plan: Sequence[PlannedCase],
    suite_paths: Sequence[Path],
    jobs: int,
    sample: int | None = None,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
    defects: Sequence[DriverDefect] | None = None,
) -> tuple[Applicability, DriverStrength]:
    """Return which cases each defect applies to, and which defects the cases notice.

    Each defect is tried on a sample of each operator's cases that meet its conditions. If fewer
    than `FEW` of them notice it, or none in a sample smaller than `FEW`, it is tried on the other
    cases, too, unless `defects` are given or its entry says why no case catches it.

    Args:
        suite_paths: the files of the suite, whose recordings give expected values.
        jobs: how many processes; 1 measures in this one.
        sample: the most cases of the sample; None for all.
        advance: called for each case of the samples after its chunk.
        defects: some of `driver_defects` or `size_defects`; None for all `driver_defects`.

    Raises:
        InvalidFilesError: a case cannot be built, or is not valid.
        BackendError: a recording of the suite cannot be read, or a process died.
    """
    tried = driver_defects() if defects is None else defects
    strength = DriverStrength()
    with in_processes(jobs, _Worker.start, (suite_paths,)) as mapped:
        applicability = _applicability(mapped, plan, tried)
        chosen = applicability.chosen(sample, seed)
        for cases, part in _measured(mapped, plan, chosen):
            strength.add(part)
            for _ in range(cases):
                advance()
        if defects is None:
            few = _noticed_by_few(applicability, strength, sample)
            rest = applicability.rest(sample, seed, few)
            for _, part in _measured(mapped, plan, rest):
                strength.add(part)
    return applicability, strength


def _applicability(
    mapped: ItemMap, plan: Sequence[PlannedCase], defects: Sequence[DriverDefect]
) -> Applicability:
    names = [defect.name for defect in defects]
    starts = range(0, len(plan), _CHUNK_OF_CONDITIONS)
    chunks = [(plan[start : start + _CHUNK_OF_CONDITIONS], names) for start in starts]
    applicability = Applicability({})
    for start, part in zip(starts, mapped(_Worker.applicability, chunks), strict=True):
        applicability.add(part, start)
    return applicability


def _measured(
    mapped: ItemMap, plan: Sequence[PlannedCase], by_case: Mapping[int, list[OperatorDefect]]
) -> Iterator[tuple[int, DriverStrength]]:
    tries = [(plan[index], pairs) for index, pairs in by_case.items()]
    chunks = [tries[start : start + _CHUNK] for start in range(0, len(tries), _CHUNK)]
    for chunk, part in zip(chunks, mapped(_Worker.measure, chunks), strict=True):
        yield len(chunk), part


def _noticed_by_few(
    applicability: Applicability, strength: DriverStrength, sample: int | None
) -> list[OperatorDefect]:
    """Return the pairs that too few cases notice, but none that entries explain."""
    least = FEW if tells_few(sample) else 1
    explained = {
        OperatorDefect(defect.name, operator)
        for defect in driver_defects()
        for operator in defect.survives
    }
    return [
        pair
        for pair in applicability.met
        if strength.pairs.get(pair, DriverTally()).caught < least and pair not in explained
    ]


class _Worker:
    """The state of a worker process."""

    against: Against

    @classmethod
    def start(cls, suite_paths: Sequence[Path]) -> None:
        cls.against, _ = suite_expectations(suite_paths)

    @classmethod
    def applicability(cls, chunk: tuple[Sequence[PlannedCase], Sequence[str]]) -> Applicability:
        cases, names = chunk
        return applicability_of(map(valid_case, cases), [defects_by_name()[name] for name in names])

    @classmethod
    def measure(cls, chunk: Sequence[_Try]) -> DriverStrength:
        strength = DriverStrength()
        for planned, pairs in chunk:
            measure_case(strength, valid_case(planned), pairs, cls.against)
        return strength
