"""Atoms: single conditions that cases may share, and which cases meet each.

An atom is an expression of the catalogue's language over the names of `dmlconf.cases.facts.names`.
The *bits* of an atom say how far-fetched the atom is: 5 for `Packed`, 9.5 for
`InputTensor.Sizes[-1] > 37`. `desc_atoms` lists an operator's atoms; `search` combines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["Atom", "AtomTable", "Column", "TableBuilder", "exact_numbers", "round_number"]

MOST_CONSTANTS: Final = 16
"""The most values of a fact for which there are atoms, such as SUM in `Function == SUM`."""
MOST_BOUNDS: Final = 16
"""The most bounds of a number, such as 2 in `Axis > 2`, besides the lowest and highest values of
groups of cases."""

_NEGATION: Final = 1.0
"""Bits that `!=` adds where a fact is compared with a constant."""
_FAR_BOUND: Final = 1.5
"""Bits that a bound other than 0 and 1 adds."""
_REMAINDER: Final = 2.5
"""Bits that a remainder adds."""

_WHOLE_IN_FLOAT64: Final = 2**53
"""FLOAT64 has every integer up to this magnitude."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A single condition over the facts of a case.

    Attributes:
        text: the condition as an expression.
        bits: how far-fetched the condition is.
        alternatives: up to three other expressions that hold for the same cases, nearly as simple.
    """

    text: str
    bits: float
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AtomTable:
    """Atoms that hold for different sets of cases.

    Attributes:
        holds: whether each atom holds for each case; BOOL, shape (atoms, cases).
        index: the row in `holds` of each expression that holds for some but not all cases.
        bits: the bits of each expression.
    """

    atoms: tuple[Atom, ...]
    holds: Array
    index: Mapping[str, int]
    bits: Mapping[str, float]


class Column:
    """The values of one fact: `distinct[codes[i]]` is the value of case i, or None."""

    def __init__(self, values: Iterable[Any]) -> None:
        """`values` has a value or None for each case."""
        listed = list(values)
        keys: list[Hashable] = listed
        try:
            examples = dict(zip(keys, listed, strict=True))
        except TypeError:  # Lists and mappings are not hashable.
            keys = list(map(repr, listed))
            examples = dict(zip(keys, listed, strict=True))
        self.distinct: list[Any] = list(examples.values())
        codes = {key: code for code, key in enumerate(examples)}
        self.codes = np.array([codes[key] for key in keys], np.intp)

    def derived(self, values: Sequence[Any]) -> Column:
        """Return a column with `values[i]` for each case whose value is `distinct[i]`."""
        column = Column(values)
        column.codes = column.codes[self.codes]
        return column

    def spread(self, values: Sequence[Any], dtype: Any) -> Array:
        """Return an array with `values[i]` for each case whose value is `distinct[i]`."""
        spread: Array = np.array(values, dtype)[self.codes]
        return spread

    def numbers(self, measure: Callable[[Any], float | None]) -> Array:
        """Return a measure of each case's value, as `exact_numbers` does; NaN if there is none."""
        measured = [None if value is None else measure(value) for value in self.distinct]
        return exact_numbers(measured)[self.codes]

    def mask(self, test: Callable[[Any], bool]) -> Array:
        """Return which cases have a value that meets a test."""
        return self.spread([value is not None and test(value) for value in self.distinct], bool)


def exact_numbers(numbers: Iterable[float | None]) -> Array:
    """Return numbers as FLOAT64, and as Python's numbers if FLOAT64 would round one of them.

    None becomes NaN. 2^53 + 1 is an integer that FLOAT64 would round, to 2^53.
    """
    listed = [math.nan if number is None else number for number in numbers]
    rounded = any(isinstance(each, int) and abs(each) > _WHOLE_IN_FLOAT64 for each in listed)
    return np.array(listed, object if rounded else np.float64)


class TableBuilder:
    """Collects atoms over a fixed sequence of cases."""

    def __init__(self, cases: int, groups: Sequence[Array]) -> None:
        """`groups` are indices of cases; the lowest and highest values of a group become bounds."""
        self._cases = cases
        self._groups = groups
        self._added: list[tuple[str, float, Array]] = []

    def add(self, text: str, bits: float, holds: Array) -> None:
        """Add one atom."""
        self._added.append((text, bits, holds))

    def flag(self, text: str, bits: float, holds: Array) -> None:
        """Add an atom and its negation."""
        self.add(text, bits, holds)
        self.add(f"not {text}", bits, ~holds)

    def constants(
        self, text: str, bits: float, column: Column, *, absent_differs: bool = False
    ) -> None:
        """Add `text == VALUE` and `text != VALUE` for values of a fact.

        If some cases lack the fact, its first `MOST_CONSTANTS` values get atoms. If all cases have
        it, its values get atoms only if there are 2 to `MOST_CONSTANTS` of them.

        Args:
            absent_differs: whether `text != VALUE` holds for cases without the fact.
        """
        known = [code for code, value in enumerate(column.distinct) if value is not None]
        if not 1 < len(known) <= MOST_CONSTANTS and None not in column.distinct:
            return
        present = column.mask(lambda value: True)
        for code in known[:MOST_CONSTANTS]:
            holds, value = column.codes == code, column.distinct[code]
            self.add(f"{text} == {value}", bits, holds)
            self.add(f"{text} != {value}", bits + _NEGATION, ~holds & (present | absent_differs))

    def numbers(
        self,
        text: str,
        bits: float,
        values: Array,
        *,
        divisors: Sequence[int] = (),
        most: int = MOST_BOUNDS,
    ) -> None:
        """Add atoms for bounds, exact values and remainders of a number.

        If fewer than two different finite numbers occur, no atoms are added.

        Args:
            bits: the bits of `> 0` and `> 1`; others take as many or more.
            values: the number of each case, as `exact_numbers` returns them.
            divisors: the divisors of remainders, for which all finite numbers must be whole.
            most: the most bounds, as `MOST_BOUNDS`. With more different numbers than this, only 0
                and 1 get atoms for exact values.
        """
        known, finite = _known(values), _finite(values)
        distinct = np.unique(values[finite])
        if len(distinct) < 2:
            return
        whole = all(number == int(number) for number in distinct.tolist())
        if len(distinct) <= most:
            for value, holds in zip(distinct.tolist(), values == distinct[:, None], strict=True):
                far = 0.2 if value in (0, 1) else 1
                self.add(f"{text} == {_shown(value)}", bits + far, holds)
        for value in (0, 1):
            if value in distinct:
                if len(distinct) > most:
                    self.add(f"{text} == {value}", bits + 0.2, values == value)
                self.add(f"{text} != {value}", bits + _NEGATION, (values != value) & known)
        bounds = self._bounds(distinct, values, most)
        if bounds:
            lows = np.array([low for low, _ in bounds])[:, None]
            below, above = values <= lows, values > lows
            for at, (low, high) in enumerate(bounds):
                lower, upper = _relations(low, high, whole=whole)
                self.add(f"{text} {lower[0]} {_shown(lower[1])}", bits + lower[2], below[at])
                self.add(f"{text} {upper[0]} {_shown(upper[1])}", bits + upper[2], above[at])
        if whole and divisors:
            numbers = np.where(finite, values, 0)
            for divisor in divisors:
                multiple = finite & (numbers % divisor == 0)
                self.add(f"{text} % {divisor} != 0", bits + _REMAINDER, finite & ~multiple)
                self.add(f"{text} % {divisor} == 0", bits + _REMAINDER, multiple)

    def _bounds(self, distinct: Array, values: Array, most: int) -> list[tuple[float, float]]:
        last = len(distinct) - 2
        if last < most:
            splits = set(range(last + 1))
        else:
            splits = set(np.linspace(0, last, most).astype(int).tolist())
            for group in self._groups:
                own = values[group]
                own = own[_finite(own)]
                if len(own):
                    least = int(np.searchsorted(distinct, own.min()))
                    greatest = int(np.searchsorted(distinct, own.max()))
                    splits |= {least - 1, greatest} & set(range(last + 1))
        known = distinct.tolist()
        return [(known[at], known[at + 1]) for at in sorted(splits)]

    def table(self) -> AtomTable:
        """Return the atoms that some but not all cases meet; of equivalent atoms, the simplest."""
        if not self._added:
            return AtomTable((), np.zeros((0, self._cases), bool), {}, {})
        texts, far, masks = zip(*self._added, strict=True)
        holds = np.array(masks, bool)
        sums = holds.sum(axis=1)
        packed = np.packbits(holds, axis=1)
        alike: dict[bytes, list[int]] = {}
        for at in np.flatnonzero((sums > 0) & (sums < self._cases)).tolist():
            alike.setdefault(packed[at].tobytes(), []).append(at)
        atoms: list[Atom] = []
        rows: list[int] = []
        index: dict[str, int] = {}
        for rows_alike in alike.values():
            rows_alike.sort(key=far.__getitem__)
            best = rows_alike[0]
            near = [at for at in rows_alike[1:] if far[at] <= far[best] + 1.5]
            for at in rows_alike:
                index[texts[at]] = len(atoms)
            alternatives = tuple(texts[at] for at in near[:3])
            atoms.append(Atom(texts[best], far[best], alternatives))
            rows.append(best)
        bits = dict(zip(texts, far, strict=True))
        return AtomTable(tuple(atoms), holds[rows], index, bits)


def _known(values: Array) -> Array:
    """Return which numbers are not NaN."""
    if values.dtype != object:
        return ~np.isnan(values)
    return np.array([value == value for value in values.tolist()], bool)


def _finite(values: Array) -> Array:
    """Return which numbers are finite; Python's integers may be larger than any FLOAT64."""
    if values.dtype != object:
        return np.isfinite(values)
    return np.array(
        [isinstance(value, int) or math.isfinite(value) for value in values.tolist()], bool
    )


_Relation = tuple[str, float, float]


def _relations(low: float, high: float, *, whole: bool) -> tuple[_Relation, _Relation]:
    """Return a relation that holds up to `low` and one from `high` on, with the bits of each."""
    if low < 0 <= high:
        return ("<", 0.0, 0.1), (">" if high else ">=", 0.0, 0.0)
    bound = round_number(low, high, whole=whole)
    far = 0.0 if bound in (0, 1) else _FAR_BOUND
    if whole and low + 1 == high:
        return ("<", high, far + 0.3), (">", bound, far)
    return ("<=", bound, far + 0.1), (">", bound, far)


def _shown(value: float) -> str:
    if isinstance(value, int) or value == int(value):
        return f"{int(value)}"
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)


def round_number(low: float, high: float, *, whole: bool) -> float:
    """Return a round number n with `low <= n < high`, such as 1024 for 1000 and 1100.

    0 is preferred, then 1. Otherwise, if `whole`, n is a multiple of the largest possible power of
    two. If not, n is (low + high) / 2 rounded to the fewest digits that fit, at most 5; if none
    fits, n is `low`.
    """
    for natural in (0.0, 1.0):
        if low <= natural < high:
            return natural
    if not whole:
        for digits in range(1, 6):
            candidate = float(f"{(low + high) / 2:.{digits}g}")
            if low <= candidate < high:
                return candidate
        return low
    first, end = int(low), int(high)
    power = 1 << max(abs(first), abs(end), 1).bit_length() - 1
    while power:
        candidate = -(-first // power) * power
        if candidate < end:
            return candidate
        power >>= 1
    return low
