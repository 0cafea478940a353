"""Count the pairs of parameter values that the cases of a suite have, by operator.

One pair of GEMM is TransA TRANSPOSE with TransB TRANSPOSE. The pair is covered if a valid case has
both values. If not, the pair is missing, or excluded for a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from dmlconf.cases.model import Case
from dmlconf.catalogue.model import Entry
from dmlconf.coverage.combinations.exclusions import reason
from dmlconf.coverage.combinations.parameters import Parameter, parameters_of, values_of
from dmlconf.coverage.combinations.partial_descs import Assignment
from dmlconf.coverage.valid_cases import valid_cases

__all__ = ["Combination", "CombinationCoverage", "measure_combinations"]

Combination = tuple[tuple[str, str], ...]
"""Parameters with their values, such as `(("TransA", "NONE"), ("rows", "prime"))`."""

_Values = tuple[str | None, ...]


@dataclass(frozen=True)
class CombinationCoverage:
    """What a suite covers of one operator's pairs.

    Attributes:
        combinations: the values of each case, in the order of the parameters; None for a parameter
            that a case lacks.
    """

    operator: Entry
    parameters: tuple[Parameter, ...]
    combinations: frozenset[_Values]

    @cached_property
    def covered(self) -> frozenset[Combination]:
        """The pairs of listed values that a case has."""
        names = [each.name for each in self.parameters]
        known = [frozenset(each.values) for each in self.parameters]
        pairs: set[tuple[int, str, int, str]] = set()
        for values in self.combinations:
            present = [(at, v) for at, v in enumerate(values) if v is not None and v in known[at]]
            pairs.update((a, v, b, w) for (a, v), (b, w) in combinations(present, 2))
        return frozenset(((names[a], v), (names[b], w)) for a, v, b, w in pairs)

    @cached_property
    def _others(self) -> tuple[tuple[Combination, ...], Mapping[Combination, str]]:
        missing: list[Combination] = []
        excluded: dict[Combination, str] = {}
        for pair, assigned in _pairs(self.operator, self.parameters):
            if pair not in self.covered:
                why = reason(self.operator, pair, assigned)
                if why is None:
                    missing.append(pair)
                else:
                    excluded[pair] = why
        return tuple(missing), excluded

    @property
    def missing(self) -> tuple[Combination, ...]:
        """The possible pairs that no case has."""
        return self._others[0]

    @property
    def excluded(self) -> Mapping[Combination, str]:
        """The impossible pairs that no case has, each with the reason."""
        return self._others[1]

    @property
    def contradictions(self) -> Iterator[tuple[Combination, str]]:
        """The pairs that a case has although they are excluded, each with the reason."""
        for pair, assigned in _pairs(self.operator, self.parameters):
            if pair in self.covered:
                why = reason(self.operator, pair, assigned)
                if why is not None:
                    yield pair, why

    def share(self) -> tuple[int, int]:
        """Return how many pairs are covered, and how many are possible."""
        return len(self.covered), len(self.covered) + len(self.missing)


def _pairs(
    operator: Entry, parameters: tuple[Parameter, ...]
) -> Iterator[tuple[Combination, tuple[Assignment, ...]]]:
    for one, other in combinations(parameters, 2):
        seconds = [(value, other.assigned(value)) for value in other.values]
        for value in one.values:
            assigned = one.assigned(value)
            for second, also in seconds:
                yield ((one.name, value), (other.name, second)), (*assigned, *also)


def measure_combinations(
    operators: Iterable[Entry],
    cases: Iterable[Case],
    advance: Callable[[], None] = lambda: None,
) -> dict[str, CombinationCoverage]:
    """Return the coverage of pairs by the valid cases, by the operator's name."""
    entries = {operator.name: operator for operator in operators}
    values: dict[str, set[_Values]] = {name: set() for name in entries}
    for case in valid_cases(cases, entries, advance):
        parameters = parameters_of(entries[case.operator_name])
        values[case.operator_name].add(values_of(case, parameters))
    return {
        name: CombinationCoverage(operator, parameters_of(operator), frozenset(values[name]))
        for name, operator in entries.items()
    }
