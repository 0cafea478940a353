"""How much of the operators a suite covers, as counts and in percent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from dmlconf.catalogue.loader import operator_names

__all__ = ["HasShare", "operator_count", "percentage", "total_share"]


class HasShare(Protocol):
    """The coverage of one operator by a suite."""

    def share(self) -> tuple[int, int]:
        """Return how much is covered, and how much there is."""


def total_share(rows: Iterable[HasShare]) -> tuple[int, int]:
    """Return how much of all operators is covered, and how much there is."""
    shares = [row.share() for row in rows]
    return sum(covered for covered, _ in shares), sum(of for _, of in shares)


def percentage(covered: int, of: int) -> float:
    """Return the share in percent, 100 if there is nothing to cover."""
    return 100 * covered / of if of else 100.0


def operator_count(names: Iterable[str]) -> int:
    """Return how many different operators the names contain; `GRAPHS`, for all graphs, is none."""
    return len({*names} & {*operator_names()})
