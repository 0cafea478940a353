"""How many injected defects cases catch."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CaseTally", "share"]


@dataclass(slots=True)
class CaseTally:
    """How many defects a case, or all cases of an operator, should catch, and how many they caught.

    Attributes:
        ran: how many defects change an output, or would with other inputs. In `strength.measure`,
            each output and way to inject a defect counts, unless the rule permits the change.
        caught: how many of them make the case fail.
    """

    operator: str
    ran: int = 0
    caught: int = 0

    def add(self, other: CaseTally) -> None:
        """Add the counts of another tally."""
        self.ran += other.ran
        self.caught += other.caught


def share(caught: int, tried: int) -> float:
    """Return the percentage of tried defects that were caught; 100 if none was tried."""
    return 100 * caught / tried if tried else 100.0
