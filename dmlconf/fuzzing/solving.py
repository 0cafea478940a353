"""Find changes of a desc that give a term another value, to repair a broken constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from dmlconf.fuzzing.arithmetic import ARITHMETIC
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.terms import Changes, Term, items_of

__all__ = ["ABSENT", "ANOTHER", "PRESENT", "Solver"]


@dataclass(frozen=True, slots=True)
class _Marker:
    name: str


PRESENT: Final = _Marker("present")
"""In a change: add the tensor, attribute or size, with a random value."""

ANOTHER: Final = _Marker("another")
"""In a change: replace the value by a random one. For an attribute, this may be the old value; for
a tensor's data type, it is another; for a nested operator, it is one that no constraint names."""

ABSENT: Final = None
"""In a change: leave the tensor or attribute out."""

_NO_CONSTANT: Final = 99
"""A number that is not a constant of any enum."""

_MOST: Final = 12
"""The most changes that `Solver.some` yields."""


class Solver:
    """Finds changes that give terms a value."""

    def __init__(self, chance: Chance, *, beyond_enums: bool = False) -> None:
        """If `beyond_enums` is set, attributes may also become `_NO_CONSTANT`."""
        self.chance = chance
        self._beyond_enums = beyond_enums

    def solve(self, term: Term, target: Any) -> Iterator[Changes]:
        """Yield changes that may give the term the value `target`, True or False for conditions.

        A term that has the value yields only `()`. A constant with another value yields nothing.
        """
        if _same(term.value, target):
            yield ()
            return
        if term.is_constant and term.kind != "error":
            return
        rule = _RULES.get(term.kind)
        if rule is not None:
            yield from rule(self, term, target)

    def some(self, term: Term, target: Any) -> Iterator[Changes]:
        """Yield the first changes of `solve`, at most `_MOST`."""
        return islice(self.solve(term, target), _MOST)

    def all_of(self, terms: Sequence[Term], targets: Sequence[Any]) -> Iterator[Changes]:
        """Yield changes that may give terms their values.

        If several terms have other values, changes of all of them at once come before changes for
        single terms.
        """
        wrong = [(t, v) for t, v in zip(terms, targets, strict=True) if not _same(t.value, v)]
        if len(wrong) > 1:
            choices = [list(self.some(term, target)) for term, target in wrong]
            if all(choices):
                for first in range(min(3, max(map(len, choices)))):
                    yield tuple(c for each in choices for c in each[min(first, len(each) - 1)])
        for term, target in wrong:
            yield from self.some(term, target)

    # Values.

    def _field(self, term: Term, target: Any) -> Iterator[Changes]:
        assert term.path is not None
        if isinstance(target, bool) and not isinstance(term.value, bool):
            # The value is used as a condition, which holds if the value is present and not zero.
            if isinstance(term.value, int | float):
                yield ((term.path, int(target)),)
            else:
                yield ((term.path, PRESENT if target else ABSENT),)
            return
        yield ((term.path, target),)

    def _tuple(self, term: Term, target: Any) -> Iterator[Changes]:
        if not isinstance(target, tuple):
            if term.path is not None and target in (ABSENT, PRESENT):
                yield ((term.path, target),)
            return
        items = items_of(term)
        if len(items) == len(target):
            yield from self.all_of(items, target)
        elif term.path is not None:
            yield ((term.path, target),)

    def _slice(self, term: Term, target: Any) -> Iterator[Changes]:
        base, *items = term.parts
        if not isinstance(target, tuple):
            return
        if len(items) == len(target):
            yield from self.all_of(items, target)
            return
        # The base is too long or too short by as much as the slice.
        value = base.value
        at_end = not items or value[-len(items) :] == tuple(item.value for item in items)
        kept = value[: len(value) - len(items)] if at_end else value[len(items) :]
        yield from self.solve(base, kept + target if at_end else target + kept)

    def _concatenation(self, term: Term, target: Any) -> Iterator[Changes]:
        if not isinstance(target, tuple):
            return
        left, right = term.parts
        lengths = len(left.value), len(right.value)
        for cut in dict.fromkeys((lengths[0], len(target) - lengths[1])):
            if 0 <= cut <= len(target):
                yield from self.all_of((left, right), (target[:cut], target[cut:]))

    def _reversed(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self.solve(term.parts[0], tuple(reversed(target)))

    def _aligned(self, term: Term, target: Any) -> Iterator[Changes]:
        (base, *_) = term.parts
        count = len(base.value)
        if len(target) <= count:
            yield from self.solve(base, (1,) * (count - len(target)) + target)
        else:
            yield from self.solve(base, target[len(target) - count :])
            yield from self.solve(base, target)

    def _ones(self, term: Term, target: Any) -> Iterator[Changes]:
        if isinstance(target, tuple):
            yield from self.solve(term.parts[0], len(target))

    def _length(self, term: Term, target: Any) -> Iterator[Changes]:
        (base,) = term.parts
        if (
            not isinstance(target, int)
            or not 0 <= target <= 32
            or not isinstance(base.value, tuple)
        ):
            return
        value, count = base.value, len(base.value)
        if target <= count:
            yield from self._tuple(base, value[count - target :])
            yield from self._tuple(base, value[:target])
        elif all(isinstance(item, int) for item in value):
            ones = (1,) * (target - count)
            yield from self._tuple(base, ones + value)
            yield from self._tuple(base, value + ones)
            repeated = value[-1:] or (1,)
            yield from self._tuple(base, value + repeated * (target - count))
        else:
            yield from self._tuple(base, value + (PRESENT,) * (target - count))

    def _member(self, term: Term, target: Any) -> Iterator[Changes]:
        if term.path is not None:
            *owner, name = term.path
            if name == "Packed" or (name in ("Broadcast", "OverlappingStrides") and not target):
                yield (((*owner, "Strides"), None),)

    def _choice(self, term: Term, target: Any) -> Iterator[Changes]:
        test, branch = term.parts
        yield from self.solve(branch, target)
        yield from self.some(test, not test.value)

    # Conditions.

    def _equal(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        if target is (term.kind in ("==", "is")):
            for one, other in self.chance.shuffled([(left, right), (right, left)]):
                yield from self.some(one, other.value)
            if left.value is None or right.value is None:
                absent, present = (left, right) if left.value is None else (right, left)
                yield from self.some(absent, PRESENT)
                yield from self.some(present, ABSENT)
            return
        for part in (left, right):
            yield from self._unequal(part)

    def _unequal(self, part: Term) -> Iterator[Changes]:
        if part.value is None:
            yield from self.some(part, PRESENT)
        elif isinstance(part.value, bool | int | float) and not isinstance(part.value, bool):
            for value in (part.value + 1, part.value - 1, part.value * 2, 0):
                yield from self.some(part, value)
        elif isinstance(part.value, tuple):
            for item in self.chance.shuffled(items_of(part)):
                yield from self._unequal(item)
            if part.value:
                yield from self.some(part, part.value[1:])
            yield from self.some(part, (*part.value, 1))
        elif isinstance(part.value, bool):
            yield from self.some(part, not part.value)
        elif part.path is not None:
            yield ((part.path, ANOTHER),)
            if self._beyond_enums and len(part.path) == 1:
                yield ((part.path, _NO_CONSTANT),)
            yield ((part.path, ABSENT),)

    def _order(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        kind = term.kind if target else _OPPOSITE[term.kind]
        if kind in (">", ">="):
            left, right, kind = right, left, _MIRRORED[kind]
        gap = 1 if kind == "<" else 0
        if isinstance(left.value, tuple) or isinstance(right.value, tuple):
            return
        whole = isinstance(left.value, int) and isinstance(right.value, int)
        steps: Sequence[float] = (0, 1, 2, self.chance.below(8)) if whole else (0, 0.5, 1)
        for step in dict.fromkeys(steps):
            yield from self.some(right, left.value + gap + step)
            yield from self.some(left, right.value - gap - step)

    def _member_of(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        if target is (term.kind == "in"):
            for item in self.chance.shuffled(items_of(right)):
                yield from self.some(left, item.value)
        else:
            yield from self._unequal(left)

    def _and(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self._junction(term.parts, is_and=True, target=target)

    def _or(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self._junction(term.parts, is_and=False, target=target)

    def _junction(self, parts: Sequence[Term], *, is_and: bool, target: Any) -> Iterator[Changes]:
        if bool(target) is is_and:
            yield from self.all_of(parts, [is_and] * len(parts))
            return
        for part in self.chance.shuffled(parts):
            yield from self.some(part, not is_and)

    def _not(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self.solve(term.parts[0], not target)

    def _alike(self, term: Term, target: Any) -> Iterator[Changes]:
        if not target:
            for part in self.chance.shuffled(term.parts):
                yield from self._unequal(part)
            return
        for value in dict.fromkeys(part.value for part in self.chance.shuffled(term.parts)):
            yield from islice(self.all_of(term.parts, [value] * len(term.parts)), 1)

    def _exactly_one(self, term: Term, target: Any) -> Iterator[Changes]:
        if not target:
            yield tuple((part.path, ABSENT) for part in term.parts if part.path is not None)
            return
        for only in self.chance.shuffled(range(len(term.parts))):
            yield tuple(
                (part.path, PRESENT if index == only else ABSENT)
                for index, part in enumerate(term.parts)
                if part.path is not None and (part.value is not None) is not (index == only)
            )

    def _begins(self, term: Term, target: Any) -> Iterator[Changes]:
        whole, beginning = term.parts
        count = len(beginning.value)
        if target:
            yield from self.solve(whole, beginning.value + whole.value[count:])
            yield from self.solve(beginning, whole.value[:count])
        else:
            yield from self._unequal(whole)

    def _error(self, term: Term, target: Any) -> Iterator[Changes]:
        for part in term.parts:
            if part.value is None and part.path is not None:
                yield ((part.path, PRESENT),)
            elif isinstance(part.value, int) and not isinstance(part.value, bool):
                for value in (1, 0, 2, 3):
                    yield from self.some(part, value)


def _same(value: Any, target: Any) -> bool:
    if isinstance(target, bool):
        return bool(value) is target
    return bool(value == target) and (value is None) is (target is None)


_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED: Final = {">": "<", ">=": "<="}

_Rule = Callable[[Solver, Term, Any], Iterator[Changes]]

_RULES: Final[Mapping[str, _Rule]] = {
    **ARITHMETIC,
    "field": Solver._field,
    "tuple": Solver._tuple,
    "slice": Solver._slice,
    "concatenation": Solver._concatenation,
    "reversed": Solver._reversed,
    "drop_leading_ones": Solver._aligned,
    "right_aligned": Solver._aligned,
    "ones": Solver._ones,
    "len": Solver._length,
    "member": Solver._member,
    "if": Solver._choice,
    "==": Solver._equal,
    "!=": Solver._equal,
    "is": Solver._equal,
    "is not": Solver._equal,
    "<": Solver._order,
    "<=": Solver._order,
    ">": Solver._order,
    ">=": Solver._order,
    "in": Solver._member_of,
    "not in": Solver._member_of,
    "and": Solver._and,
    "or": Solver._or,
    "all": Solver._and,
    "any": Solver._or,
    "not": Solver._not,
    "same": Solver._alike,
    "exactly_one": Solver._exactly_one,
    "starts_with": Solver._begins,
    "error": Solver._error,
}
