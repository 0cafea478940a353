"""Rules of `solving` for sums, products, quotients and other arithmetic in constraints.

A rule takes a term and the value that the term should have, and yields changes of the desc that may
give it that value. For `GroupCount * 3` and 6, the rule for products yields a GroupCount of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol

from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.terms import Changes, Term

__all__ = ["ARITHMETIC"]


class _Solver(Protocol):
    """The methods of `solving.Solver` that these rules call."""

    @property
    def chance(self) -> Chance:
        """The source of random choices."""

    def some(self, term: Term, target: Any) -> Iterator[Changes]:
        """Yield the first changes of `solve`."""

    def all_of(self, terms: tuple[Term, ...], targets: list[Any]) -> Iterator[Changes]:
        """Yield changes that may give all terms their values, then changes for single terms."""

    def solve(self, term: Term, target: Any) -> Iterator[Changes]:
        """Yield changes that may give a term a value."""


def _sum_of_two(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    left, right = term.parts
    yield from solver.some(left, target - right.value)
    yield from solver.some(right, target - left.value)


def _difference(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    left, right = term.parts
    yield from solver.some(left, target + right.value)
    yield from solver.some(right, left.value - target)


def _quotient(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    left, right = term.parts
    if term.kind == "/":
        yield from solver.some(left, target * right.value)
        return
    for rest in dict.fromkeys((0, right.value - 1, solver.chance.below(max(1, right.value)))):
        yield from solver.some(left, target * right.value + rest)
    if target:
        yield from solver.some(right, left.value // target)


def _remainder(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    left, right = term.parts
    whole = left.value - left.value % right.value + target
    for value in (whole, whole + right.value):
        if value > 0:
            yield from solver.some(left, value)
    for divisor in range(1, min(left.value - target, 64) + 1):
        if (left.value - target) % divisor == 0 and divisor > target:
            yield from solver.some(right, divisor)


def _negative(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    yield from solver.solve(term.parts[0], -target)


def _total(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    total = term.value
    for part in solver.chance.shuffled(term.parts):
        yield from solver.some(part, part.value + target - total)


def _product(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    for part in solver.chance.shuffled(term.parts):
        others = 1
        for other in term.parts:
            others *= 1 if other is part else other.value
        if others and target % others == 0:
            yield from solver.some(part, target // others)
    for index, _ in enumerate(term.parts):
        targets = [target if index == other else 1 for other in range(len(term.parts))]
        yield from islice(solver.all_of(term.parts, targets), 1)


def _extreme(solver: _Solver, term: Term, target: Any) -> Iterator[Changes]:
    for part in term.parts:
        if part.value == term.value:
            yield from solver.some(part, target)
    yield from islice(solver.all_of(term.parts, [target] * len(term.parts)), 1)


ARITHMETIC: Final[Mapping[str, Callable[[Any, Term, Any], Iterator[Changes]]]] = {
    "+": _sum_of_two,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "//": _quotient,
    "%": _remainder,
    "negative": _negative,
    "sum": _total,
    "product": _product,
    "max": _extreme,
    "min": _extreme,
}
"""The rules, by the kinds of terms for which they are."""
