"""Keep the verdicts of a very large run in columns; a verdict is made when it is read.

A verdict takes the bytes of its identifier, and 56 for numbers. Its other values are pickled, and
equal pickles are kept once.
"""

from __future__ import annotations

import pickle
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import Any, Final, overload

import numpy as np

from dmlconf.run_log.packed import DIGITS, Packed
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.choosing import LazyVerdicts, Part
from dmlconf.verdicts.verdict import Execution, Identity, Judgement, Status, Verdict

__all__ = ["MOST_OBJECTS", "VerdictColumns"]

MOST_OBJECTS: Final = 100_000
"""By default, the verdicts of a log of more selected cases than this are kept in columns."""

_NONE: Final = -1
"""Stands for None in columns of numbers from 0."""

_ENCODING: Final = "utf-8", "surrogatepass"

_NOTHING: Final[Mapping[str, Any]] = {}


class VerdictColumns:
    """Takes verdicts in any order, and gives them in the order of the plan."""

    def __init__(self) -> None:
        self._places = array("Q")
        self._cases = bytearray()
        self._ends = array("Q")
        self._seconds = array("d")
        self._sequences = array("q")
        self._identities = _Parts(Identity, "facts", "case")
        self._judgements = _Parts(Judgement, "figures")
        self._executions = _Parts(Execution, "output_digests", "seconds", "sequence")

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, verdict: Verdict, place: int) -> None:
        """Add a verdict and its place in the plan.

        Raises:
            OverflowError: a number is too large for its column; the columns cannot be used any
                more.
        """
        identity, execution = verdict.identity, verdict.execution
        self._places.append(place)
        self._cases += identity.case.encode(*_ENCODING)
        self._ends.append(len(self._cases))
        self._seconds.append(round(execution.seconds, DIGITS))
        self._sequences.append(_NONE if execution.sequence is None else execution.sequence)
        self._identities.append(identity)
        self._judgements.append(verdict.judgement)
        self._executions.append(execution)

    def in_order(self, chosen: Array | None = None) -> LazyVerdicts:
        """Return the verdicts in the order of their places; then no verdict may be added any more.

        Args:
            chosen: the indices, in the order of adding, of the wanted verdicts; None for all.
        """
        if chosen is None:
            chosen = np.arange(len(self), dtype=np.uint32)
        places = np.frombuffer(self._places, np.uint64)[chosen]
        return _InOrder(self, chosen[np.argsort(places, kind="stable")].astype(np.uint32))

    def case(self, index: int) -> str:
        """Return the case of a verdict, by its index in the order of adding."""
        begin = self._ends[index - 1] if index else 0
        return self._cases[begin : self._ends[index]].decode(*_ENCODING)

    def verdict(self, index: int) -> Verdict:
        """Return a verdict, by its index in the order of adding."""
        sequence = self._sequences[index]
        return Verdict(
            self._identities.part(index, self.case(index)),
            self._judgements.part(index),
            self._executions.part(
                index, self._seconds[index], None if sequence == _NONE else sequence
            ),
        )

    def each(self, part: type[Part], compute: Callable[[Part], Any]) -> tuple[Sequence[Any], Array]:
        """Apply a function to a part of each verdict.

        The part lacks the values of a single case, such as the identifier and the facts
        (`dmlconf.verdicts.choosing`). Results must be hashable.

        Returns:
            The different results, and for each verdict the index of its result.
        """
        parts: Mapping[Any, Any] = {
            Identity: self._identities,
            Judgement: self._judgements,
            Execution: self._executions,
        }
        results, numbers = parts[part].each(compute)
        unique = {result: number for number, result in enumerate(dict.fromkeys(results))}
        return list(unique), np.array([unique[each] for each in results], np.uint32)[numbers]


class _InOrder(LazyVerdicts):
    def __init__(self, columns: VerdictColumns, order: Array) -> None:
        self._columns, self._order = columns, order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Verdict]:
        return map(self._columns.verdict, self._order.data)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Verdict]: ...

    def __getitem__(self, index: int | slice) -> Verdict | Sequence[Verdict]:
        if isinstance(index, slice):
            return _InOrder(self._columns, self._order[index])
        return self._columns.verdict(int(self._order[index]))

    def where(self, part: type[Part], wanted: Callable[[Part], bool]) -> Sequence[Verdict]:
        return self._by(part, wanted).get(True, ())

    def cases(self) -> Iterator[str]:
        return map(self._columns.case, self._order.data)

    def statuses(self) -> Counter[Status]:
        counts = self._by(Judgement, lambda judgement: judgement.status)
        return Counter({status: len(verdicts) for status, verdicts in counts.items()})

    def by_operator(self) -> Mapping[str, Sequence[Verdict]]:
        return self._by(Identity, lambda identity: identity.operator)

    def _by(self, part: type[Part], compute: Callable[[Part], Any]) -> dict[Any, _InOrder]:
        """Return the verdicts by the results of a function of a part, in order of appearance."""
        results, numbers = self._columns.each(part, compute)
        own = numbers[self._order]
        _, first = np.unique(own, return_index=True)
        present = own[np.sort(first)].tolist()
        return {
            results[number]: _InOrder(self._columns, self._order[own == number])
            for number in present
        }


class _Parts:
    """A column of one part of each verdict, without the fields `own`.

    `VerdictColumns` keeps the fields `own`, which differ from case to case, and gives their values
    to `part`. The field `mapping`, such as `facts`, is stored separately, since reports seldom read
    it.
    """

    def __init__(self, kind: type[Any], mapping: str, *own: str) -> None:
        names = [each.name for each in fields(kind)]
        shared = [name for name in names if name not in (mapping, *own)]
        self._kind = kind
        self._shared_values = attrgetter(*shared)
        self._mapping = attrgetter(mapping)
        self._arranged = _arranging(names, [*shared, mapping, *own])
        self._blank: tuple[Any, ...] = ("",) * len(own)
        self._shared, self._mappings = _Shared(), _Shared()
        # Without a reference to self, the log is freed as soon as nothing else refers to it.
        self._make = partial(_part_of, kind, self._arranged, self._shared, self._mappings)
        self._cached = lru_cache(maxsize=256)(self._make)
        self._has_own = bool(own)

    def append(self, part: Any) -> None:
        self._shared.append(self._shared_values(part))
        mapping = self._mapping(part)
        self._mappings.append(dict(mapping) if mapping else None)

    def part(self, index: int, *own: Any) -> Any:
        numbers = self._shared.numbers[index], self._mappings.numbers[index]
        return self._make(*numbers, *own) if self._has_own else self._cached(*numbers)

    def each(self, compute: Callable[[Any], Any]) -> tuple[list[Any], Array]:
        """Return the results for all shared values, and the index of each verdict's result."""
        made = (
            self._kind(*self._arranged((*pickle.loads(content), _NOTHING, *self._blank)))
            for content in self._shared.contents
        )
        return list(map(compute, made)), np.frombuffer(self._shared.numbers, np.uint32)


def _part_of(
    kind: type[Any],
    arranged: Callable[[Any], tuple[Any, ...]],
    shared: _Shared,
    mappings: _Shared,
    number: int,
    mapping: int,
    *own: Any,
) -> Any:
    content = mappings.contents[mapping]
    values = (
        *_unpickled(shared.contents[number]),
        _NOTHING if content == _PICKLED_NONE else Packed(content),
        *own,
    )
    return kind(*arranged(values))


def _arranging(names: Sequence[str], given: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that brings values from the order of `given` to that of `names`."""
    return itemgetter(*map(given.index, names))


class _Shared:
    """A column of values as pickles, of which equal ones are kept once."""

    def __init__(self) -> None:
        self.numbers = array("I")
        self.contents: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def append(self, value: Any) -> None:
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        number = self._known.setdefault(content, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        self.numbers.append(number)


_PICKLED_NONE: Final = pickle.dumps(None, pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=256)
def _unpickled(content: bytes) -> Any:
    return pickle.loads(content)  # Safe: this process made it.
