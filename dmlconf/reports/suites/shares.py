"""The share that a suite covers of what it could cover, for any kind of coverage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

__all__ = ["HasShare", "percentage", "total_share"]


class HasShare(Protocol):
    """The coverage of one operator by a suite."""

    def share(self) -> tuple[int, int]:
        """Return how much is covered, and how much there is."""


def total_share(rows: Iterable[HasShare]) -> tuple[int, int]:
    """Return how much is covered of all operators together, and how much there is."""
    shares = [row.share() for row in rows]
    return sum(covered for covered, _ in shares), sum(of for _, of in shares)


def percentage(covered: int, of: int) -> float:
    """Return the share in percent: 100 where there is nothing to cover."""
    return 100 * covered / of if of else 100.0
