"""Measure how small the suite's graphs become if they keep their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case, ExpectedRejection, PlannedCase
from dmlconf.diagnosis.reduction.cost import element_count
from dmlconf.diagnosis.reduction.reduce import reduce_case, with_own_data
from dmlconf.resources import cases_directory

__all__ = ["MeasuredGraph", "measured_graphs"]

_MOST_NODES: Final = 8
_OF_ONE_KIND: Final = ("-element-wise/", "-activation/")
"""Files whose graphs differ in one operator; only the first graph is measured."""


@dataclass(frozen=True)
class MeasuredGraph:
    """The reduction of a graph: elements of its inputs and outputs, before and after."""

    identifier: str
    before: int
    elements: int
    trials: int
    seconds: float


def measured_graphs() -> Iterator[MeasuredGraph]:
    """Reduce the first graph of each template, if it has few nodes; yield the results."""
    for planned in _chosen():
        case = valid_case(planned)
        if not isinstance(case, GraphCase) or isinstance(case.expectation, ExpectedRejection):
            continue
        own = with_own_data(case)
        operators = _operators(own)
        if len(operators) > _MOST_NODES:
            continue
        began = perf_counter()
        reduced = reduce_case(own, lambda candidate: _operators(candidate) == operators)  # noqa: B023  # Called at once.
        yield MeasuredGraph(
            planned.identifier,
            element_count(case),
            element_count(reduced.case),
            reduced.trials,
            perf_counter() - began,
        )


def _operators(case: Case) -> list[str]:
    assert isinstance(case, GraphCase)
    return [node.operator_name for node in case.graph.operator_nodes]


def _chosen() -> Iterator[PlannedCase]:
    seen: set[str] = set()
    for planned in load_suite([cases_directory() / "graphs"]).plan():
        template = planned.identifier.partition("[")[0]
        if any(part in template for part in _OF_ONE_KIND):
            template = template.rpartition("/")[0]
        if template not in seen and "model" not in planned.template.tags:
            seen.add(template)
            yield planned
