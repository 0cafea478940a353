"""The cases of a run that have no verdict or outcome yet, found by identifier in little memory.

For each case, a digest, an index and a flag take 8 + 4 + 1 = 13 bytes; a dictionary of identifiers
would take 150.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from dmlconf.cases.model import PlannedCase

__all__ = ["Unreached"]


class Unreached:
    """The cases without a verdict or outcome, in their order, and the place of each in the plan."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def expect(self, cases: Sequence[PlannedCase], places: Sequence[int]) -> None:
        """Add cases, with the place of each in the plan."""
        self._parts = [part for part in self._parts if part.count]
        self._parts.append(_Part(cases, places))

    def place(self, case: str) -> int:
        """Return the place of a case; raise `KeyError` if the case is not left."""
        part, index = self._part_with(case)
        return part.places[index]

    def reach(self, case: str) -> int:
        """Remove a case, and return its place; raise `KeyError` if the case is not left."""
        part, index = self._part_with(case)
        part.remove(index)
        return part.places[index]

    def clear(self) -> None:
        """Remove all cases."""
        self._parts.clear()

    def __contains__(self, case: str) -> bool:
        return any(part.has(case) for part in self._parts)

    def __len__(self) -> int:
        return sum(part.count for part in self._parts)

    def __iter__(self) -> Iterator[PlannedCase]:
        for part in self._parts:
            yield from part.left()

    def _part_with(self, case: str) -> tuple[_Part, int]:
        for part in self._parts:
            index = part.find(case)
            if index is not None:
                return part, index
        raise KeyError(case)


class _Part:
    """Some cases, of which `count` are left.

    Attributes:
        places: the place of each case in the plan.
    """

    def __init__(self, cases: Sequence[PlannedCase], places: Sequence[int]) -> None:
        self.places = places
        self.count = len(cases)
        self._cases = cases
        self._is_left = bytearray(b"\1") * self.count
        digests = np.fromiter((hash(each.identifier) for each in cases), np.int64, self.count)
        order = np.argsort(digests, kind="stable")
        self._digests = array("q", digests[order].tobytes())
        self._order = array("I", order.astype(np.uint32).tobytes())
        self._are_different = bool(np.all(np.diff(digests[order])))

    def has(self, case: str) -> bool:
        """Return whether a case, which may be of another run, is left."""
        index = self.find(case)
        return index is not None and self._cases[index].identifier == case

    def find(self, case: str) -> int | None:
        """Return the index of a case of this run; None if the case is not left."""
        digest = hash(case)
        at = bisect_left(self._digests, digest)
        while at < len(self._digests) and self._digests[at] == digest:
            index = self._order[at]
            if self._are_different or self._cases[index].identifier == case:
                return index if self._is_left[index] else None
            at += 1
        return None

    def remove(self, index: int) -> None:
        self._is_left[index] = 0
        self.count -= 1

    def left(self) -> Iterator[PlannedCase]:
        """Yield the cases that are left, even if some are removed meanwhile."""
        return (each for each, left in zip(self._cases, self._is_left, strict=True) if left)
