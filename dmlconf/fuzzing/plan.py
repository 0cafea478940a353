"""The cases of a run, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count

from dmlconf.cases.model import PlannedCase
from dmlconf.fuzzing.operators import operator_case

__all__ = ["Fuzz"]


@dataclass(frozen=True, slots=True)
class Fuzz:
    """What to make.

    Attributes:
        operators: names in the catalogue.
        seed: determines all cases, each with its operator's name and its number.
    """

    operators: tuple[str, ...]
    seed: int

    def cases(self, numbers: Iterable[int] | None = None) -> Iterator[PlannedCase]:
        """Yield the first case of each operator, then the second of each, and so on.

        Args:
            numbers: which cases; None for all, without an end.
        """
        for number in count() if numbers is None else numbers:
            for name in self.operators:
                yield operator_case(name, self.seed, number)

    @property
    def width(self) -> int:
        """How many cases there are of each number."""
        return len(self.operators)

    @property
    def digest(self) -> str:
        """What a run log has in place of the digest of case files."""
        return sha256(repr(self).encode("utf-8")).hexdigest()
