"""Find the cases of a suite that meet the conditions of each driver defect, without running any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.strength.drivers.catalogue import DriverDefect
from dmlconf.strength.drivers.conditions import features

__all__ = ["Applicability", "Met", "OperatorDefect", "applicability_of"]


class OperatorDefect(NamedTuple):
    """A driver defect in one of its operators."""

    defect: str
    operator: str


@dataclass(slots=True)
class Met:
    """How the cases of an operator meet a defect's conditions.

    Attributes:
        cases: the indices in the plan of the cases that meet all conditions.
        single: how many cases meet each condition, in the order of the defect's conditions.
    """

    single: list[int]
    cases: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Applicability:
    """Which cases each driver defect applies to, by defect and operator."""

    met: dict[OperatorDefect, Met]

    def add(self, later: Applicability, offset: int) -> None:
        """Add what later cases of the plan meet; their indices are counted from `offset`."""
        for pair, met in later.met.items():
            own = self.met.setdefault(pair, Met([0] * len(met.single)))
            own.single = [a + b for a, b in zip(own.single, met.single, strict=True)]
            own.cases += [offset + index for index in met.cases]

    def chosen(self, sample: int | None, seed: int) -> dict[int, list[OperatorDefect]]:
        """Return the pairs to try with each case, by its index in the plan.

        Args:
            sample: the most cases of each pair; None for all.
            seed: decides which cases are chosen.
        """
        return _by_case({pair: _sample(pair, met, sample, seed) for pair, met in self.met.items()})

    def rest(
        self, sample: int | None, seed: int, pairs: Iterable[OperatorDefect]
    ) -> dict[int, list[OperatorDefect]]:
        """Return what `chosen` leaves out of some pairs, in the same form.

        Args:
            sample: as for `chosen`.
            seed: as for `chosen`.
            pairs: the pairs to try.
        """
        left: dict[OperatorDefect, Sequence[int]] = {}
        for pair in pairs:
            tried = set(_sample(pair, self.met[pair], sample, seed))
            left[pair] = [index for index in self.met[pair].cases if index not in tried]
        return _by_case(left)


def _sample(pair: OperatorDefect, met: Met, sample: int | None, seed: int) -> Sequence[int]:
    if sample is None or len(met.cases) <= sample:
        return met.cases
    return Random(f"{seed} {pair}").sample(met.cases, sample)


def _by_case(cases: Mapping[OperatorDefect, Sequence[int]]) -> dict[int, list[OperatorDefect]]:
    tries: dict[int, list[OperatorDefect]] = {}
    for pair, indices in cases.items():
        for index in indices:
            tries.setdefault(index, []).append(pair)
    return dict(sorted(tries.items()))


def applicability_of(cases: Iterable[Case], defects: Sequence[DriverDefect]) -> Applicability:
    """Return which cases meet which conditions; no case that expects a rejection counts."""
    by_operator: dict[str, list[DriverDefect]] = {}
    for defect in defects:
        for operator in defect.operators:
            by_operator.setdefault(operator, []).append(defect)
    met: dict[OperatorDefect, Met] = {}
    for index, case in enumerate(cases):
        rejected = isinstance(case.expectation, ExpectedRejection)
        candidates = [] if rejected else by_operator.get(case.operator_name, [])
        names = features(case) if candidates else {}
        for defect in candidates:
            pair = OperatorDefect(defect.name, case.operator_name)
            entry = met.setdefault(pair, Met([0] * len(defect.conditions)))
            holds = defect.met(names)
            entry.single = [a + b for a, b in zip(entry.single, holds, strict=True)]
            if all(holds):
                entry.cases.append(index)
    return Applicability(met)
