"""The cases of a fuzzing run, in the order in which they are generated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import count
from typing import Final

from dmlconf.cases.model import CaseTemplate, PlannedCase
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.graphs import MOST_NODES, graph_case, planted_case
from dmlconf.fuzzing.invalid import invalid_case
from dmlconf.fuzzing.operators import operator_case

__all__ = ["Fuzz", "Kind"]

_PLANTED_ONCE_IN: Final = 3


class Kind(StrEnum):
    """What a run of `dmlconf fuzz` generates."""

    VALID = "valid"
    INVALID = "invalid"
    GRAPHS = "graphs"


@dataclass(frozen=True, slots=True)
class Fuzz:
    """What to generate.

    Attributes:
        operators: names in the catalogue.
        seed: determines each case, together with the other attributes and the case's number.
        nodes: the largest number of random nodes of a graph.
        rewrites: templates of cases of rewrites; on average, one graph in three contains the graph
            of such a case.
    """

    operators: tuple[str, ...]
    seed: int
    kind: Kind = Kind.VALID
    nodes: int = MOST_NODES
    rewrites: tuple[CaseTemplate, ...] = field(default=(), repr=False)

    def cases(self, numbers: Iterable[int] | None = None) -> Iterator[PlannedCase]:
        """Yield the cases of one number after another: one case for each operator, or one graph.

        Args:
            numbers: the numbers of the cases, from 0; None for all, without end.
        """
        for number in count() if numbers is None else numbers:
            if self.kind is Kind.GRAPHS:
                yield self._graph(number)
                continue
            make = invalid_case if self.kind is Kind.INVALID else operator_case
            for name in self.operators:
                yield make(name, self.seed, number)

    def _graph(self, number: int) -> PlannedCase:
        if self.rewrites and Chance(self.seed, "planted", number).once_in(_PLANTED_ONCE_IN):
            return planted_case(self.operators, self.seed, number, self.nodes, self.rewrites)
        return graph_case(self.operators, self.seed, number, self.nodes)

    @property
    def width(self) -> int:
        """How many cases have the same number."""
        return 1 if self.kind is Kind.GRAPHS else len(self.operators)

    @property
    def digest(self) -> str:
        """What a run log records instead of the digest of case files; `rewrites` do not count."""
        return sha256(repr(self).encode("utf-8")).hexdigest()
