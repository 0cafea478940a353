"""Keep planned cases in little memory: those of a large matrix as an `Expansion`."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Final, overload

from dmlconf.cases.loading.expansion import Expansion
from dmlconf.cases.model import CaseTemplate, PlannedCase

__all__ = ["Picked", "PlannedCases", "of_each_template"]

_MOST_OBJECTS: Final = 1000
"""The most consecutive cases of a matrix that are kept as objects."""


class _MadeOnDemand(Sequence[PlannedCase]):
    """Planned cases that are made when they are asked for; a slice is a `Picked`."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: int) -> PlannedCase: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PlannedCase]: ...

    def __getitem__(self, index: int | slice) -> PlannedCase | Sequence[PlannedCase]:
        if isinstance(index, slice):
            return Picked(self, range(len(self))[index])
        return self._case(index)

    @abstractmethod
    def _case(self, index: int) -> PlannedCase:
        """Return the case at an index, which may be negative."""


class PlannedCases(_MadeOnDemand):
    """Planned cases in order; those of large matrices are made each time they are asked for."""

    def __init__(self, cases: Iterable[PlannedCase] = ()) -> None:
        self._blocks: list[list[PlannedCase] | _OfMatrix] = []
        self._ends: list[int] = []
        for template, group in groupby(cases, attrgetter("template")):
            self._append(_block(template, group))

    def _append(self, block: list[PlannedCase] | _OfMatrix) -> None:
        end = len(self) + len(block)
        last = self._blocks[-1] if self._blocks else None
        if isinstance(block, list) and isinstance(last, list):
            last += block
            self._ends[-1] = end
        else:
            self._blocks.append(block)
            self._ends.append(end)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[PlannedCase]:
        return chain.from_iterable(self._blocks)

    def of_each_template(self) -> Iterator[PlannedCase]:
        """Yield the first case of each template, and perhaps others."""
        for block in self._blocks:
            yield from block[:1] if isinstance(block, _OfMatrix) else block

    def _case(self, index: int) -> PlannedCase:
        place = range(len(self))[index]
        number = bisect_right(self._ends, place)
        begin = self._ends[number - 1] if number else 0
        return self._blocks[number][place - begin]


def _block(template: CaseTemplate, cases: Iterator[PlannedCase]) -> list[PlannedCase] | _OfMatrix:
    first = list(islice(cases, _MOST_OBJECTS + 1))
    if len(first) <= _MOST_OBJECTS or not first[0].parameters:
        return [*first, *cases]
    return _OfMatrix(template, Expansion.of(each.parameters for each in chain(first, cases)))


@dataclass(frozen=True, slots=True)
class _OfMatrix(_MadeOnDemand):
    template: CaseTemplate
    expansion: Expansion

    def __len__(self) -> int:
        return len(self.expansion)

    def __iter__(self) -> Iterator[PlannedCase]:
        return self.expansion.cases(self.template)

    def _case(self, index: int) -> PlannedCase:
        return self.expansion.case(self.template, index)


class Picked(_MadeOnDemand):
    """Some cases of a plan in any order, kept as their indices."""

    _plan: Sequence[PlannedCase]
    _indices: array[int]

    def __init__(self, plan: Sequence[PlannedCase], indices: Iterable[int]) -> None:
        if isinstance(plan, Picked):  # Keep indices into the whole plan instead.
            indices = map(plan._indices.__getitem__, indices)
            plan = plan._plan
        self._plan, self._indices = plan, array("I", indices)

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[PlannedCase]:
        return map(self._plan.__getitem__, self._indices)

    def _case(self, index: int) -> PlannedCase:
        return self._plan[self._indices[index]]


def of_each_template(plan: Iterable[PlannedCase]) -> Iterable[PlannedCase]:
    """Return the first case of each template of a plan, and perhaps others.

    A plan other than a `PlannedCases` is returned whole.
    """
    return plan.of_each_template() if isinstance(plan, PlannedCases) else plan
