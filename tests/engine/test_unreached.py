"""`Unreached` finds the cases without a verdict by identifier, and takes little memory.

The tested code is in `dmlconf/engine/unreached.py`.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dmlconf.cases.model import PlannedCase
from dmlconf.engine.unreached import Unreached
from tests.engine.cases import numbered_cases

COUNT = 2000
"""Enough cases that fixed costs hardly count."""

MOST_BYTES_OF_A_CASE = 20


class SameHash(str):
    """An identifier with the same hash as all others."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7


@pytest.fixture(params=[str, SameHash])
def cases(request: pytest.FixtureRequest, tmp_path: Path) -> list[PlannedCase]:
    planned = numbered_cases(tmp_path, 8)
    return [PlannedCase(request.param(each.identifier), each.template, {}) for each in planned]


def test_each_case_is_reached_once_in_any_order(
    cases: list[PlannedCase],
) -> None:
    unreached = Unreached()
    unreached.expect(cases, range(10, 18))  # The places of the cases.
    names = [planned.identifier for planned in cases]
    assert all(name in unreached for name in names)
    assert type(names[0])("tile/other") not in unreached
    assert unreached.place(names[3]) == 13
    assert [unreached.reach(names[each]) for each in (3, 0, 7)] == [13, 10, 17]
    assert names[3] not in unreached
    assert len(unreached) == 5
    assert list(unreached) == [cases[each] for each in (1, 2, 4, 5, 6)]
    with pytest.raises(KeyError):
        unreached.reach(names[3])


def test_cases_expected_later_are_listed_last(
    cases: list[PlannedCase],
) -> None:
    unreached = Unreached()
    unreached.expect(cases[:3], range(3))
    unreached.reach(cases[1].identifier)
    unreached.expect(cases[3:], range(3, 8))
    assert list(unreached) == [cases[0], *cases[2:]]
    assert unreached.reach(cases[6].identifier) == 6
    assert unreached.reach(cases[2].identifier) == 2
    unreached.clear()
    assert not len(unreached)


def test_unreached_case_takes_little_memory(tmp_path: Path) -> None:
    planned = numbered_cases(tmp_path, COUNT)
    unreached = Unreached()
    tracemalloc.start()
    unreached.expect(planned, range(COUNT))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < MOST_BYTES_OF_A_CASE * COUNT
