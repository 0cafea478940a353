"""Pseudo-random choices that are the same on every machine and Python version."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeVar

__all__ = ["Chance"]

_Value = TypeVar("_Value")

_MASK: Final = (1 << 64) - 1


class Chance:
    """A source of random choices; the same names, such as a seed, give the same choices.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    """

    __slots__ = ("_state",)

    def __init__(self, *names: str | int) -> None:
        digest = sha256("\0".join(map(str, names)).encode("utf-8")).digest()
        self._state = int.from_bytes(digest[:8], "little")

    def bits(self) -> int:
        """Return a random number from 0 to 2^64 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit: int) -> int:
        """Return a random number from 0 to `limit - 1`; `limit` is at least 1."""
        return self.bits() * limit >> 64

    def between(self, low: int, high: int) -> int:
        """Return a random number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def once_in(self, count: int) -> bool:
        """Return True at random, on average once in `count` times."""
        return self.below(count) == 0

    def pick(self, values: Sequence[_Value]) -> _Value:
        """Return one of the values at random; there must be at least one."""
        return values[self.below(len(values))]

    def weighted(self, values: Sequence[tuple[_Value, int]]) -> _Value:
        """Return one of the values at random, in proportion to the weights next to them."""
        number = self.below(sum(weight for _, weight in values))
        for value, weight in values:
            if number < weight:
                return value
            number -= weight
        raise AssertionError("a number below the sum of the weights belongs to one of them")

    def shuffled(self, values: Sequence[_Value]) -> list[_Value]:
        """Return the values in random order."""
        rest, ordered = list(values), []
        while rest:
            ordered.append(rest.pop(self.below(len(rest))))
        return ordered
