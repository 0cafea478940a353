"""Atoms: the single conditions that a set of cases may share, and which cases meet each.

An atom is an expression of the catalogue's language over what `dmlconf.cases.facts.names` names.
Its *bits* say how far-fetched it is: a condition of fewer bits is a simpler explanation. `Packed`
or a data type takes 5, an arbitrary bound on the size of a dimension twice as many.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["Atom", "AtomTable", "Column", "TableBuilder", "round_number"]

MOST_CONSTANTS: Final = 16
MOST_BOUNDS: Final = 16

_NEGATION: Final = 1.0
_FAR_BOUND: Final = 1.5
_REMAINDER: Final = 2.5


@dataclass(frozen=True, slots=True)
class Atom:
    """A single condition.

    Attributes:
        text: the expression.
        bits: how far-fetched it is.
        alternatives: expressions that hold for just the same cases, and are as simple.
    """

    text: str
    bits: float
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AtomTable:
    """Atoms that differ in the cases that they hold for.

    Attributes:
        atoms: the atoms, each the simplest of those that hold for the same cases.
        holds: of shape (atoms, cases), BOOL.
        index: the row of each expression, also of those that are not the simplest.
        bits: how far-fetched each expression is.
    """

    atoms: tuple[Atom, ...]
    holds: Array
    index: Mapping[str, int]
    bits: Mapping[str, float]


class Column:
    """The values that one fact has in each case; few of them differ."""

    def __init__(self, values: Iterable[Any]) -> None:
        """Take a value for each case; None for none."""
        codes: dict[Hashable, int] = {}
        self.distinct: list[Any] = []
        places = []
        for value in values:
            key = repr(value) if isinstance(value, list | dict) else value
            code = codes.get(key)
            if code is None:
                code = codes[key] = len(self.distinct)
                self.distinct.append(value)
            places.append(code)
        self.codes = np.array(places, np.intp)

    def spread(self, values: Sequence[Any], dtype: Any) -> Array:
        """Return an array over the cases from one value for each distinct value."""
        spread: Array = np.array(values, dtype)[self.codes]
        return spread

    def numbers(self, measure: Callable[[Any], float | None]) -> Array:
        """Return a measure of each case's value, FLOAT64; NaN where there is none."""
        measured = [None if value is None else measure(value) for value in self.distinct]
        return self.spread([np.nan if m is None else m for m in measured], np.float64)

    def mask(self, test: Callable[[Any], bool]) -> Array:
        """Tell which cases have a value that meets a test."""
        return self.spread([value is not None and test(value) for value in self.distinct], bool)


class TableBuilder:
    """Collects atoms over a fixed sequence of cases."""

    def __init__(self, cases: int, groups: Sequence[Array]) -> None:
        """Begin.

        Args:
            cases: how many cases there are.
            groups: places of cases whose least and greatest values make bounds.
        """
        self._cases = cases
        self._groups = groups
        self._texts: list[str] = []
        self._bits: list[float] = []
        self._masks: list[Array] = []

    def add(self, text: str, bits: float, holds: Array) -> None:
        """Add one atom."""
        self._texts.append(text)
        self._bits.append(bits)
        self._masks.append(holds)

    def flag(self, text: str, bits: float, holds: Array) -> None:
        """Add an atom and its negation."""
        self.add(text, bits, holds)
        self.add(f"not {text}", bits, ~holds)

    def constants(self, text: str, bits: float, column: Column) -> None:
        """Add which constant a fact is."""
        known = [code for code, value in enumerate(column.distinct) if value is not None]
        if not 1 < len(known) <= MOST_CONSTANTS and None not in column.distinct:
            return
        present = column.mask(lambda value: True)
        for code in known[:MOST_CONSTANTS]:
            holds, value = column.codes == code, column.distinct[code]
            self.add(f"{text} == {value}", bits, holds)
            self.add(f"{text} != {value}", bits + _NEGATION, ~holds & present)

    def numbers(
        self,
        text: str,
        bits: float,
        values: Array,
        *,
        divisors: Sequence[int] = (),
        most: int = MOST_BOUNDS,
    ) -> None:
        """Add bounds of a number, the numbers that it is, and remainders of sizes.

        Args:
            text: the expression of the number.
            bits: how far-fetched a bound of 0 or 1 is.
            values: the number of each case; NaN where there is none.
            divisors: what to divide by for remainders.
            most: how many bounds to add, beside those at the ends of groups.
        """
        distinct = np.unique(values[np.isfinite(values)])
        if len(distinct) < 2:
            return
        whole = bool((distinct == np.rint(distinct)).all())
        if len(distinct) <= most:
            self._extend(
                [f"{text} == {_shown(value)}" for value in distinct],
                [bits + (0.2 if value in (0, 1) else 1) for value in distinct],
                values == distinct[:, None],
            )
        known = np.isfinite(values)
        for value in (0, 1):
            if value in distinct:
                self.add(f"{text} == {value}", bits + 0.2, values == value)
                self.add(f"{text} != {value}", bits + _NEGATION, (values != value) & known)
        bounds = self._bounds(distinct, values, most)
        if bounds:
            below = values <= np.array([low for low, _ in bounds])[:, None]
            above = values > np.array([low for low, _ in bounds])[:, None]
            for at, (low, high) in enumerate(bounds):
                lower, upper = _relations(low, high, whole=whole)
                self.add(f"{text} {lower[0]} {_shown(lower[1])}", bits + lower[2], below[at])
                self.add(f"{text} {upper[0]} {_shown(upper[1])}", bits + upper[2], above[at])
        if whole:
            for divisor in divisors:
                rest = np.mod(values, divisor)
                self.add(f"{text} % {divisor} != 0", bits + _REMAINDER, rest > 0)
                self.add(f"{text} % {divisor} == 0", bits + _REMAINDER, rest == 0)

    def _extend(self, texts: Sequence[str], bits: Sequence[float], holds: Array) -> None:
        self._texts += texts
        self._bits += bits
        self._masks += list(holds)

    def _bounds(self, distinct: Array, values: Array, most: int) -> list[tuple[float, float]]:
        """Return neighbouring values between which to part the cases."""
        last = len(distinct) - 2
        if last < most:
            places = set(range(last + 1))
        else:
            places = set(np.linspace(0, last, most).astype(int).tolist())
            for group in self._groups:
                own = values[group]
                own = own[np.isfinite(own)]
                if len(own):
                    least = int(np.searchsorted(distinct, own.min()))
                    greatest = int(np.searchsorted(distinct, own.max()))
                    places |= {least - 1, greatest} & set(range(last + 1))
        return [(float(distinct[at]), float(distinct[at + 1])) for at in sorted(places)]

    def table(self) -> AtomTable:
        """Return the atoms that hold for some cases and not for all, without duplicates."""
        if not self._masks:
            return AtomTable((), np.zeros((0, self._cases), bool), {}, {})
        holds = np.array(self._masks, bool)
        sums = holds.sum(axis=1)
        packed = np.packbits(holds, axis=1)
        alike: dict[bytes, list[int]] = {}
        for at in np.flatnonzero((sums > 0) & (sums < self._cases)).tolist():
            alike.setdefault(packed[at].tobytes(), []).append(at)
        atoms: list[Atom] = []
        rows: list[int] = []
        index: dict[str, int] = {}
        for places in alike.values():
            places.sort(key=self._bits.__getitem__)
            best = places[0]
            near = [p for p in places[1:] if self._bits[p] <= self._bits[best] + 1.5]
            for place in places:
                index[self._texts[place]] = len(atoms)
            alternatives = tuple(self._texts[place] for place in near[:3])
            atoms.append(Atom(self._texts[best], self._bits[best], alternatives))
            rows.append(best)
        bits = dict(zip(self._texts, self._bits, strict=True))
        return AtomTable(tuple(atoms), holds[rows], index, bits)


_Relation = tuple[str, float, float]


def _relations(low: float, high: float, *, whole: bool) -> tuple[_Relation, _Relation]:
    """Return the relation to a bound, and its bits, of values up to low, and of those from high."""
    if low < 0 <= high:
        return ("<", 0.0, 0.1), (">" if high else ">=", 0.0, 0.0)
    bound = round_number(low, high, whole=whole)
    far = 0.0 if bound in (0, 1) else _FAR_BOUND
    if whole and low + 1 == high:
        return ("<", high, far + 0.3), (">", bound, far)
    return ("<=", bound, far + 0.1), (">", bound, far)


def _shown(value: float) -> str:
    return f"{int(value)}" if np.isfinite(value) and value == int(value) else f"{value:.6g}"


def round_number(low: float, high: float, *, whole: bool) -> float:
    """Return the roundest number from low to below high: 0, 1, or a multiple of a power of two."""
    for natural in (0.0, 1.0):
        if low <= natural < high:
            return natural
    if not whole:
        for digits in range(1, 6):
            candidate = float(f"{(low + high) / 2:.{digits}g}")
            if low <= candidate < high:
                return candidate
        return low
    power = 2.0 ** np.floor(np.log2(max(abs(low), abs(high), 1.0)))
    while power >= 1:
        candidate = float(np.ceil(low / power) * power)
        if candidate < high:
            return candidate
        power /= 2
    return low
