"""Counts that several figures share."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CaseTally", "share"]


@dataclass(slots=True)
class CaseTally:
    """What one case noticed.

    Attributes:
        operator: the case's operator.
        ran: how many defects have code that it runs.
        caught: how many of them make it fail.
    """

    operator: str
    ran: int = 0
    caught: int = 0

    def add(self, other: CaseTally) -> None:
        """Add what the case noticed of other defects."""
        self.ran += other.ran
        self.caught += other.caught


def share(caught: int, tried: int) -> float:
    """Return the share in percent; 100 where nothing was tried."""
    return 100 * caught / tried if tried else 100.0
