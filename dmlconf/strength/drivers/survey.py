"""Which cases of a suite meet the conditions of which driver defect, before any of them runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.strength.drivers.catalogue import DriverDefect
from dmlconf.strength.drivers.conditions import features

__all__ = ["Met", "Subject", "Survey", "survey"]


class Subject(NamedTuple):
    """A driver defect in one of its operators."""

    defect: str
    operator: str


@dataclass(slots=True)
class Met:
    """How the cases of an operator meet a defect's conditions.

    Attributes:
        cases: places in the plan of the cases that meet all conditions.
        single: how many cases meet each condition.
        of: how many cases the operator has.
    """

    single: list[int]
    cases: list[int] = field(default_factory=list)
    of: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """What a suite has for each driver defect.

    Attributes:
        met: by defect and operator.
    """

    met: Mapping[Subject, Met]

    def chosen(self, sample: int | None, seed: int) -> dict[int, list[Subject]]:
        """Return the subjects to try for each place in the plan.

        Args:
            sample: how many cases of each defect and operator at most; None for all.
            seed: of the random choice.
        """
        return _by_place(
            {subject: _sample(subject, met, sample, seed) for subject, met in self.met.items()}
        )

    def rest(
        self, sample: int | None, seed: int, subjects: Iterable[Subject]
    ) -> dict[int, list[Subject]]:
        """Return what `chosen` leaves out of these subjects."""
        left: dict[Subject, Sequence[int]] = {}
        for subject in subjects:
            tried = set(_sample(subject, self.met[subject], sample, seed))
            left[subject] = [place for place in self.met[subject].cases if place not in tried]
        return _by_place(left)


def _sample(subject: Subject, met: Met, sample: int | None, seed: int) -> Sequence[int]:
    """Return the places of at most so many cases."""
    if sample is None or len(met.cases) <= sample:
        return met.cases
    return Random(f"{seed} {subject}").sample(met.cases, sample)


def _by_place(cases: Mapping[Subject, Sequence[int]]) -> dict[int, list[Subject]]:
    """Return the subjects at each place, in the order of the plan."""
    tries: dict[int, list[Subject]] = {}
    for subject, places in cases.items():
        for place in places:
            tries.setdefault(place, []).append(subject)
    return dict(sorted(tries.items()))


def survey(
    cases: Iterable[Case],
    defects: Sequence[DriverDefect],
    advance: Callable[[], None] = lambda: None,
) -> Survey:
    """Return what cases meet; those that expect a rejection meet nothing.

    Args:
        cases: the suite, in the order of its plan.
        defects: the catalogue.
        advance: is called after each case.
    """
    by_operator: dict[str, list[DriverDefect]] = {}
    for defect in defects:
        for operator in defect.operators:
            by_operator.setdefault(operator, []).append(defect)
    met: dict[Subject, Met] = {}
    for place, case in enumerate(cases):
        known = by_operator.get(case.operator_name, [])
        if known and not isinstance(case.expectation, ExpectedRejection):
            names = features(case)
            for defect in known:
                subject = Subject(defect.name, case.operator_name)
                entry = met.setdefault(subject, Met([0] * len(defect.conditions)))
                holds = defect.met(names)
                entry.of += 1
                entry.single = [a + b for a, b in zip(entry.single, holds, strict=True)]
                if all(holds):
                    entry.cases.append(place)
        advance()
    return Survey(met)
