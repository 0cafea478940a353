"""Changes of a desc by which a term gets another value: how a broken constraint is mended.

Isra solves the constraints of one operator by instantiating variables in an order that needs no
backtracking; NNSmith hands them to an SMT solver. The constraints of the catalogue are richer than
what the first handles, and the second is a large dependency, so `search` walks from a desc by
chance to a valid one, a change at a time, and this module says which changes can help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.terms import Place, Term, items_of

__all__ = ["ABSENT", "ANOTHER", "PRESENT", "Change", "Changes", "Solver"]

Change = tuple[Place, Any]
"""A place of a desc, and the value that it gets."""

Changes = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class _Marker:
    name: str


PRESENT: Final = _Marker("present")
"""Stands for any tensor or attribute where there was none."""

ANOTHER: Final = _Marker("another")
"""Stands for any other value that the place can have."""

ABSENT: Final = None

_MOST: Final = 12
"""Changes that are asked of one part of a term."""


class Solver:
    """Finds changes that give terms a value."""

    def __init__(self, chance: Chance) -> None:
        """Choose among many changes by this."""
        self._chance = chance

    def solve(self, term: Term, target: Any) -> Iterator[Changes]:
        """Yield changes, any of which may give the term the value, though none is sure to.

        Args:
            term: what `terms.trace` returns.
            target: the wanted value; for a condition True or False.
        """
        if _same(term.value, target):
            yield ()
            return
        if term.is_constant and term.kind != "error":
            return
        rule = _RULES.get(term.kind)
        if rule is not None:
            yield from rule(self, term, target)

    def _some(self, term: Term, target: Any) -> Iterator[Changes]:
        return islice(self.solve(term, target), _MOST)

    def _all(self, terms: Sequence[Term], targets: Sequence[Any]) -> Iterator[Changes]:
        """Yield changes that give each of the terms its value, some at once and some one by one."""
        wrong = [(t, v) for t, v in zip(terms, targets, strict=True) if not _same(t.value, v)]
        if len(wrong) > 1:
            choices = [list(self._some(term, target)) for term, target in wrong]
            if all(choices):
                for first in range(min(3, max(map(len, choices)))):
                    yield tuple(c for each in choices for c in each[min(first, len(each) - 1)])
        for term, target in wrong:
            yield from self._some(term, target)

    # Values.

    def _place(self, term: Term, target: Any) -> Iterator[Changes]:
        assert term.place is not None
        if isinstance(target, bool) and not isinstance(term.value, bool):
            # The term is a condition that holds for whatever is present and not zero.
            if isinstance(term.value, int | float):
                yield ((term.place, int(target)),)
            else:
                yield ((term.place, PRESENT if target else ABSENT),)
            return
        yield ((term.place, target),)

    def _tuple(self, term: Term, target: Any) -> Iterator[Changes]:
        if not isinstance(target, tuple):
            if term.place is not None and target in (ABSENT, PRESENT):
                yield ((term.place, target),)
            return
        items = items_of(term)
        if len(items) == len(target):
            yield from self._all(items, target)
        elif term.place is not None:
            yield ((term.place, target),)

    def _slice(self, term: Term, target: Any) -> Iterator[Changes]:
        base, *items = term.parts
        if not isinstance(target, tuple):
            return
        if len(items) == len(target):
            yield from self._all(items, target)
            return
        # The base is as much too long or too short as the slice.
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
                yield from self._all((left, right), (target[:cut], target[cut:]))

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
        if term.place is not None:
            *owner, name = term.place
            if name == "Packed" or (name in ("Broadcast", "OverlappingStrides") and not target):
                yield (((*owner, "Strides"), None),)

    def _choice(self, term: Term, target: Any) -> Iterator[Changes]:
        test, branch = term.parts
        yield from self.solve(branch, target)
        yield from self._some(test, not test.value)

    # Arithmetic.

    def _sum_of_two(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        yield from self._some(left, target - right.value)
        yield from self._some(right, target - left.value)

    def _difference(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        yield from self._some(left, target + right.value)
        yield from self._some(right, left.value - target)

    def _product_of_two(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self._product(term, target)

    def _quotient(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        if term.kind == "/":
            yield from self._some(left, target * right.value)
            return
        for rest in dict.fromkeys((0, right.value - 1, self._chance.below(max(1, right.value)))):
            yield from self._some(left, target * right.value + rest)
        if target:
            yield from self._some(right, left.value // target)

    def _remainder(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        whole = left.value - left.value % right.value + target
        for value in (whole, whole + right.value):
            if value > 0:
                yield from self._some(left, value)
        for divisor in range(1, min(left.value - target, 64) + 1):
            if (left.value - target) % divisor == 0 and divisor > target:
                yield from self._some(right, divisor)

    def _negative(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self.solve(term.parts[0], -target)

    def _total(self, term: Term, target: Any) -> Iterator[Changes]:
        total = term.value
        for part in self._chance.shuffled(term.parts):
            yield from self._some(part, part.value + target - total)

    def _product(self, term: Term, target: Any) -> Iterator[Changes]:
        for part in self._chance.shuffled(term.parts):
            others = 1
            for other in term.parts:
                others *= 1 if other is part else other.value
            if others and target % others == 0:
                yield from self._some(part, target // others)
        for place, _ in enumerate(term.parts):
            targets = [target if place == other else 1 for other in range(len(term.parts))]
            yield from islice(self._all(term.parts, targets), 1)

    def _extreme(self, term: Term, target: Any) -> Iterator[Changes]:
        for part in term.parts:
            if part.value == term.value:
                yield from self._some(part, target)
        yield from islice(self._all(term.parts, [target] * len(term.parts)), 1)

    # Conditions.

    def _equal(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        if target is (term.kind in ("==", "is")):
            for one, other in self._chance.shuffled([(left, right), (right, left)]):
                yield from self._some(one, other.value)
            if left.value is None or right.value is None:
                absent, present = (left, right) if left.value is None else (right, left)
                yield from self._some(absent, PRESENT)
                yield from self._some(present, ABSENT)
            return
        for part in (left, right):
            yield from self._unequal(part)

    def _unequal(self, part: Term) -> Iterator[Changes]:
        if part.value is None:
            yield from self._some(part, PRESENT)
        elif isinstance(part.value, bool | int | float) and not isinstance(part.value, bool):
            for value in (part.value + 1, part.value - 1, part.value * 2, 0):
                yield from self._some(part, value)
        elif isinstance(part.value, tuple):
            for item in self._chance.shuffled(items_of(part)):
                yield from self._unequal(item)
            if part.value:
                yield from self._some(part, part.value[1:])
            yield from self._some(part, (*part.value, 1))
        elif isinstance(part.value, bool):
            yield from self._some(part, not part.value)
        elif part.place is not None:
            yield ((part.place, ANOTHER),)
            yield ((part.place, ABSENT),)

    def _order(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        kind = term.kind if target else _OPPOSITE[term.kind]
        if kind in (">", ">="):
            left, right, kind = right, left, _MIRRORED[kind]
        gap = 1 if kind == "<" else 0
        if isinstance(left.value, tuple) or isinstance(right.value, tuple):
            return
        whole = isinstance(left.value, int) and isinstance(right.value, int)
        steps: Sequence[float] = (0, 1, 2, self._chance.below(8)) if whole else (0, 0.5, 1)
        for step in dict.fromkeys(steps):
            yield from self._some(right, left.value + gap + step)
            yield from self._some(left, right.value - gap - step)

    def _member_of(self, term: Term, target: Any) -> Iterator[Changes]:
        left, right = term.parts
        if target is (term.kind == "in"):
            for item in self._chance.shuffled(items_of(right)):
                yield from self._some(left, item.value)
        else:
            yield from self._unequal(left)

    def _and(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self._junction(term.parts, is_and=True, target=target)

    def _or(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self._junction(term.parts, is_and=False, target=target)

    def _junction(self, parts: Sequence[Term], *, is_and: bool, target: Any) -> Iterator[Changes]:
        if bool(target) is is_and:
            yield from self._all(parts, [is_and] * len(parts))
            return
        for part in self._chance.shuffled(parts):
            yield from self._some(part, not is_and)

    def _not(self, term: Term, target: Any) -> Iterator[Changes]:
        yield from self.solve(term.parts[0], not target)

    def _alike(self, term: Term, target: Any) -> Iterator[Changes]:
        if not target:
            for part in self._chance.shuffled(term.parts):
                yield from self._unequal(part)
            return
        for value in dict.fromkeys(part.value for part in self._chance.shuffled(term.parts)):
            yield from islice(self._all(term.parts, [value] * len(term.parts)), 1)

    def _exactly_one(self, term: Term, target: Any) -> Iterator[Changes]:
        for only in self._chance.shuffled(range(len(term.parts))):
            yield tuple(
                (part.place, PRESENT if place == only else ABSENT)
                for place, part in enumerate(term.parts)
                if part.place is not None and (part.value is not None) is not (place == only)
            )
        if not target:
            yield tuple((part.place, ABSENT) for part in term.parts if part.place is not None)

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
            if part.value is None and part.place is not None:
                yield ((part.place, PRESENT),)
            elif isinstance(part.value, int) and not isinstance(part.value, bool):
                for value in (1, 0, 2, 3):
                    yield from self._some(part, value)


def _same(value: Any, target: Any) -> bool:
    if isinstance(target, bool):
        return bool(value) is target
    return bool(value == target) and (value is None) is (target is None)


_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED: Final = {">": "<", ">=": "<="}

_Rule = Callable[[Solver, Term, Any], Iterator[Changes]]

_RULES: Final[Mapping[str, _Rule]] = {
    "place": Solver._place,
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
    "+": Solver._sum_of_two,
    "-": Solver._difference,
    "*": Solver._product_of_two,
    "/": Solver._quotient,
    "//": Solver._quotient,
    "%": Solver._remainder,
    "negative": Solver._negative,
    "sum": Solver._total,
    "product": Solver._product,
    "max": Solver._extreme,
    "min": Solver._extreme,
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
