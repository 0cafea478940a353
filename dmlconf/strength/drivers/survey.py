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
        cases: indices in the plan of the cases that meet all conditions.
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
        """Return the subjects to try with each case, by its index in the plan.

        Args:
            sample: how many cases of each defect and operator at most; None for all.
            seed: of the random choice.
        """
        return _by_case(
            {subject: _sample(subject, met, sample, seed) for subject, met in self.met.items()}
        )

    def rest(
        self, sample: int | None, seed: int, subjects: Iterable[Subject]
    ) -> dict[int, list[Subject]]:
        """Return what `chosen` leaves out of these subjects."""
        left: dict[Subject, Sequence[int]] = {}
        for subject in subjects:
            tried = set(_sample(subject, self.met[subject], sample, seed))
            left[subject] = [index for index in self.met[subject].cases if index not in tried]
        return _by_case(left)


def _sample(subject: Subject, met: Met, sample: int | None, seed: int) -> Sequence[int]:
    """Return the indices of at most so many cases."""
    if sample is None or len(met.cases) <= sample:
        return met.cases
    return Random(f"{seed} {subject}").sample(met.cases, sample)


def _by_case(cases: Mapping[Subject, Sequence[int]]) -> dict[int, list[Subject]]:
    """Return the subjects of each case by its index, in the order of the plan."""
    tries: dict[int, list[Subject]] = {}
    for subject, indices in cases.items():
        for index in indices:
            tries.setdefault(index, []).append(subject)
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
    for index, case in enumerate(cases):
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
                    entry.cases.append(index)
        advance()
    return Survey(met)
