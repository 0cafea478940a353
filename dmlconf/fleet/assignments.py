"""Assign cases to the workers of a fleet, and reassign those of lost workers.

Cases of a lost worker are assigned again one at a time, since any of them may have ended it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from dmlconf.cases.model import PlannedCase

__all__ = ["MOST_LOSSES", "Assignments", "Loss"]

MOST_LOSSES: Final = 3
"""A case is `broken` when this many workers that had the case were lost."""

_LARGEST_BATCH: Final = 256
"""The most cases that a worker gets at once; a worker's first batch has one."""

_SHORT_SECONDS: Final = 0.5
"""If a full batch takes fewer seconds, the worker's next batch is twice as large."""

_LONG_SECONDS: Final = 2.0
"""If a batch takes more seconds, the worker's next batch is half as large."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A case that `MOST_LOSSES` lost workers had, and the workers' names."""

    case: PlannedCase
    workers: tuple[str, ...]


class Assignments:
    """The cases of a plan that have no verdict yet, and the workers that run them.

    The methods identify a worker by its address.

    Attributes:
        unfinished: how many cases have no verdict.
    """

    def __init__(self, plan: Sequence[PlannedCase]) -> None:
        self.unfinished = len(plan)
        self._left = iter(plan)
        self._singles: deque[PlannedCase] = deque()
        self._given: dict[str, list[PlannedCase]] = {}
        self._size: dict[str, int] = {}
        self._losses: dict[str, tuple[str, ...]] = {}

    def batch(self, worker: str) -> list[PlannedCase]:
        """Return the next cases for an idle worker; empty if none are waiting."""
        if self._singles:
            batch = [self._singles.popleft()]
        else:
            batch = list(islice(self._left, self._size.setdefault(worker, 1)))
        if batch:
            self._given[worker] = batch
        return batch

    def done(self, worker: str, seconds: float) -> None:
        """Record that a worker's batch has its verdicts; `seconds` include the round trip."""
        count, size = len(self._given.pop(worker)), self._size.get(worker, 1)
        self.unfinished -= count
        if seconds < _SHORT_SECONDS and count == size:
            self._size[worker] = min(2 * size, _LARGEST_BATCH)
        elif seconds > _LONG_SECONDS:
            self._size[worker] = max(size // 2, 1)

    def give_back(self, worker: str) -> None:
        """Let a worker's cases be assigned again, one at a time; this counts as no loss."""
        self._singles.extend(self._given.pop(worker, ()))

    def reassign(self, worker: str, name: str) -> list[Loss]:
        """Record the loss of a worker, and let its cases be assigned again, one at a time.

        Cases with `MOST_LOSSES` losses are returned instead, and no longer count as unfinished.

        Args:
            name: the worker's name, for `Loss.workers`.
        """
        hopeless = []
        for planned in self._given.pop(worker, ()):
            names = (*self._losses.get(planned.identifier, ()), name)
            self._losses[planned.identifier] = names
            if len(names) >= MOST_LOSSES:
                hopeless.append(Loss(planned, names))
                self.unfinished -= 1
            else:
                self._singles.append(planned)
        return hopeless
