"""`PlannedCases` and `Picked` are sequences of planned cases that take little memory.

If a matrix has more than 1,000 cases, they are made each time they are asked for.

The tested code is in `dmlconf/cases/loading/planned.py` and
`dmlconf/cases/loading/expansion.py`.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import Suite, load_suite
from dmlconf.cases.loading.planned import Picked, PlannedCases, of_each_template
from dmlconf.cases.model import PlannedCase

SUITE = """
operator: TILE
cases:
  - name: single
    desc: &tile
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
  - name: large
    matrix:
      Number: =range(200)
      Mixed: [1, 1.5, true, "text", [1, [2, 3]], null]
      Type: {data_types: InputTensor}
    where: =Number < 200
    desc: *tile
  - name: small
    matrix: {Number: [1, 2, 3]}
    desc: *tile
"""
"""One case, a matrix of more than 10,000 cases, and a matrix of three."""

MOST_BYTES = 20


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    folder: Path = tmp_path_factory.mktemp("suite")
    (folder / "tile.yaml").write_text(SUITE, "utf-8")
    return load_suite([folder])


@pytest.fixture(scope="module")
def cases(suite: Suite) -> list[PlannedCase]:
    planned = list(suite.plan())
    assert len(planned) > 10_000
    return planned


def exact(planned: PlannedCase) -> tuple[object, ...]:
    """Return a tuple that tells parameters 1, 1.0 and True apart."""
    return planned, str(planned.parameters), id(planned.template)


@pytest.mark.slow
def test_a_plan_has_the_cases_in_their_order(cases: list[PlannedCase]) -> None:
    plan = PlannedCases(iter(cases))
    assert len(plan) == len(cases)
    assert list(map(exact, plan)) == list(map(exact, cases))


def test_a_plan_has_each_case_at_its_index(cases: list[PlannedCase]) -> None:
    plan = PlannedCases(cases)
    for index in (0, 1, 2, 177, len(cases) - 4, len(cases) - 3, -1, -len(cases)):
        assert exact(plan[index]) == exact(cases[index])
    for part in (slice(0, 3), slice(5, None, 2501), slice(None, None, -1901), slice(4, 4)):
        assert list(map(exact, plan[part])) == list(map(exact, cases[part]))
    with pytest.raises(IndexError):
        plan[len(cases)]
    with pytest.raises(IndexError):
        plan[-len(cases) - 1]


def test_cases_can_be_picked_in_any_order(cases: list[PlannedCase]) -> None:
    indices = [5, 0, 11_000, -1, 5]
    picked = Picked(PlannedCases(cases), [each % len(cases) for each in indices])
    assert list(map(exact, picked)) == [exact(cases[each]) for each in indices]
    assert list(map(exact, picked[1:3])) == [exact(cases[each]) for each in indices[1:3]]
    assert exact(picked[-2]) == exact(cases[-1])


def test_of_each_template_gives_a_large_matrix_once(
    cases: list[PlannedCase],
) -> None:
    first = list(of_each_template(PlannedCases(cases)))
    assert first == [cases[0], cases[1], *cases[-3:]]


def taken_by(make: Callable[[], Sequence[PlannedCase]]) -> float:
    """Return how many bytes each case of a new sequence takes."""
    tracemalloc.start()
    plan = make()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / len(plan)


@pytest.mark.slow
def test_a_planned_case_takes_less_than_20_bytes(suite: Suite) -> None:
    assert taken_by(lambda: PlannedCases(suite.plan())) < MOST_BYTES


@pytest.mark.slow
def test_a_picked_case_takes_less_than_20_bytes(suite: Suite) -> None:
    plan = PlannedCases(suite.plan())
    assert taken_by(lambda: Picked(plan, range(len(plan)))) < MOST_BYTES


def test_picking_nests_deeper_than_calls_may(
    cases: list[PlannedCase],
) -> None:
    times = sys.getrecursionlimit() + 100
    left: Picked | PlannedCases = PlannedCases(cases[: times + 2])
    for _ in range(times):
        left = Picked(left, range(1, len(left)))
    assert [left[0], left[1]] == cases[times : times + 2]
