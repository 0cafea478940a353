"""Keep the verdicts of a very large run in columns; a verdict is made when it is asked for.

As an object, even a packed verdict (`dmlconf.run_log.packed`) takes 550 bytes. In columns it takes
its identifier and 44 bytes, and the facts, figures and digests that no earlier verdict has.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, overload

import numpy as np

from dmlconf.run_log.packed import DIGITS
from dmlconf.verdicts.verdict import Execution, Identity, Verdict

__all__ = ["VerdictColumns"]

_NONE: Final = -1
"""Stands for None in columns of numbers from 0."""

_ENCODING: Final = "utf-8", "surrogatepass"

_SHARED_IDENTITY: Final = attrgetter(*(each.name for each in fields(Identity)[1:]))
"""Returns all of an identity but its first field, the case."""

_SHARED_EXECUTION: Final = tuple(
    each.name for each in fields(Execution) if each.name not in ("seconds", "sequence")
)


class VerdictColumns:
    """Takes verdicts in any order, and gives them in the order of the plan."""

    def __init__(self) -> None:
        self._places = array("Q")
        self._cases = bytearray()
        self._ends = array("Q")
        self._seconds = array("d")
        self._sequences = array("q")
        self._identities = _Shared()
        self._judgements = _Shared()
        self._executions = _Shared()

    def add(self, verdict: Verdict, place: int) -> None:
        """Add the verdict on the case with this index in the plan."""
        identity, execution = verdict.identity, verdict.execution
        self._places.append(place)
        self._cases += identity.case.encode(*_ENCODING)
        self._ends.append(len(self._cases))
        self._seconds.append(round(execution.seconds, DIGITS))
        self._sequences.append(_NONE if execution.sequence is None else execution.sequence)
        self._identities.append(_SHARED_IDENTITY(identity))
        self._judgements.append(verdict.judgement)
        self._executions.append({name: getattr(execution, name) for name in _SHARED_EXECUTION})

    def in_order(self) -> Sequence[Verdict]:
        """Return the verdicts in the order of their places; none must be added later."""
        order = np.argsort(np.frombuffer(self._places, np.uint64), kind="stable")
        return _InOrder(self, array("I", order.astype(np.uint32).tobytes()))

    def verdict(self, index: int) -> Verdict:
        """Return the verdict before which `index` others were added."""
        begin = self._ends[index - 1] if index else 0
        case = self._cases[begin : self._ends[index]].decode(*_ENCODING)
        sequence = self._sequences[index]
        return Verdict(
            Identity(case, *self._identities[index]),
            self._judgements[index],
            Execution(
                self._seconds[index],
                sequence=None if sequence == _NONE else sequence,
                **self._executions[index],
            ),
        )


class _InOrder(Sequence[Verdict]):
    def __init__(self, columns: VerdictColumns, order: Sequence[int]) -> None:
        self._columns, self._order = columns, order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Verdict]:
        return map(self._columns.verdict, self._order)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Verdict]: ...

    def __getitem__(self, index: int | slice) -> Verdict | Sequence[Verdict]:
        if isinstance(index, slice):
            return _InOrder(self._columns, self._order[index])
        return self._columns.verdict(self._order[index])


class _Shared:
    """A column of values that are often equal; each different one is kept once, pickled."""

    def __init__(self) -> None:
        self._numbers = array("I")
        self._contents: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def append(self, value: Any) -> None:
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        number = self._known.setdefault(content, len(self._contents))
        if number == len(self._contents):
            self._contents.append(content)
        self._numbers.append(number)

    def __getitem__(self, index: int) -> Any:
        return _unpickled(self._contents[self._numbers[index]])


@lru_cache(maxsize=256)
def _unpickled(content: bytes) -> Any:
    return pickle.loads(content)  # Safe: this process made it.
