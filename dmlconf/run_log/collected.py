"""Collect the verdicts of a log while it is read: as objects, or in `columns`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dmlconf.run_log.columns import VerdictColumns
from dmlconf.run_log.consistency import LoggedVerdict, Repeated
from dmlconf.verdicts.verdict import Verdict

__all__ = ["LoggedColumns", "LoggedObjects"]

_NO_PLACE: Final = -1


class LoggedObjects(list[LoggedVerdict]):
    """Logged verdicts in the order in which they were added, as objects."""

    def add(self, logged: LoggedVerdict) -> None:
        """Add a verdict."""
        self.append(logged)

    def cases(self) -> Iterator[str]:
        """Yield the case of each verdict."""
        return (logged.verdict.case for logged in self)

    def repeated(self) -> None:
        """Return None: repeated cases and places are not searched for."""

    def in_order(self, repeated: Repeated | None) -> Sequence[Verdict]:
        """Return the last verdict of each case, in the order of the plan.

        A verdict without a place is sorted by the number of its line.
        """
        last = {logged.verdict.case: logged for logged in self}
        return tuple(logged.verdict for logged in sorted(last.values(), key=_order))


def _order(logged: LoggedVerdict) -> int:
    return logged.line if logged.place is None else logged.place


class LoggedColumns:
    """Logged verdicts in the order in which they were added, in columns."""

    def __init__(self) -> None:
        self._columns = VerdictColumns()
        self._lines = array("Q")
        self._places = array("q")

    def add(self, logged: LoggedVerdict) -> None:
        """Add a verdict.

        Raises:
            OverflowError: a number is too large for its column; the columns cannot be used any
                more.
        """
        self._places.append(_NO_PLACE if logged.place is None else logged.place)
        self._lines.append(logged.line)
        self._columns.add(logged.verdict, _order(logged))

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[LoggedVerdict]:
        return map(self._logged, range(len(self)))

    def cases(self) -> Iterator[str]:
        """Yield the case of each verdict."""
        return map(self._columns.case, range(len(self)))

    def repeated(self) -> Repeated:
        """Return the hashes of cases, and the places, that occur more than once."""
        return Repeated(
            _repeated(array("q", map(hash, self.cases()))),
            _repeated(array("q", (place for place in self._places if place != _NO_PLACE))),
        )

    def in_order(self, repeated: Repeated | None) -> Sequence[Verdict]:
        """Return the last verdict of each case, in the order of the plan.

        Args:
            repeated: what `repeated` returned; None if no case has several verdicts.
        """
        if repeated is None or not repeated.cases:
            return self._columns.in_order()
        last: dict[str, int] = {}
        chosen = np.ones(len(self), np.bool_)
        for index, case in enumerate(self.cases()):
            if hash(case) in repeated.cases:
                if case in last:
                    chosen[last[case]] = False
                last[case] = index
        return self._columns.in_order(np.flatnonzero(chosen))

    def _logged(self, index: int) -> LoggedVerdict:
        place = self._places[index]
        return LoggedVerdict(
            self._lines[index],
            None if place == _NO_PLACE else place,
            self._columns.verdict(index),
        )


def _repeated(numbers: array[int]) -> frozenset[int]:
    in_order = np.sort(np.frombuffer(numbers, np.int64))
    return frozenset(in_order[1:][in_order[1:] == in_order[:-1]].tolist())
