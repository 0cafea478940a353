"""The strength figure "by graph": which defects are noticed, which legitimate differences fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.judging.judge import Against, Recorded
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.graph_defects import GRAPH_DEFECTS, LEGITIMATE_GRAPH_DIFFERENCES, GraphSite
from dmlconf.strength.judging import CaseJudge
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status

__all__ = [
    "GraphFigure",
    "GraphTally",
    "measure_graphs",
]


@dataclass(slots=True)
class GraphTally:
    """The results for one defect or one legitimate difference.

    Attributes:
        tried: how often it was tried; a defect that changes no output of a graph does not count.
        failed: how often the graph failed.
        unexpected: the graphs with a defect that pass, or with a legitimate difference that fail.
    """

    tried: int = 0
    failed: int = 0
    unexpected: list[str] = field(default_factory=list)

    def add(self, later: GraphTally) -> None:
        """Add the results of later graphs."""
        self.tried += later.tried
        self.failed += later.failed
        self.unexpected += later.unexpected


@dataclass(slots=True)
class GraphFigure:
    """The results for all defects and legitimate differences, by name, in `cases` graphs."""

    cases: int = 0
    defects: dict[str, GraphTally] = field(default_factory=dict)
    legitimate: dict[str, GraphTally] = field(default_factory=dict)

    def add(self, later: GraphFigure) -> None:
        """Add the figure of further graphs."""
        self.cases += later.cases
        for own, others in ((self.defects, later.defects), (self.legitimate, later.legitimate)):
            for name, tally in others.items():
                own.setdefault(name, GraphTally()).add(tally)


def measure_graphs(
    cases: Iterable[Case], against: Against, advance: Callable[[], None] = lambda: None
) -> GraphFigure:
    """Return which defects and legitimate differences make graphs fail.

    A graph without independent expected values is compared with the reference. Graphs are left out
    if they expect a rejection, have a relation, or do not pass with the reference's outputs.
    """
    figure = GraphFigure()
    for case in cases:
        is_judged = bool(case.nodes) and case.relation is None
        if is_judged and not isinstance(case.expectation, ExpectedRejection):
            _measure(figure, case, against)
        advance()
    return figure


def _measure(figure: GraphFigure, case: Case, against: Against) -> None:
    with_inputs = case.with_inputs()
    right = evaluate(with_inputs)

    def expected(asked: Case) -> Outcome | Recorded | None:
        return against(asked) or Outputs(right)

    judged = CaseJudge(with_inputs, expected)
    if judged(right) is not Status.PASSED:
        return
    figure.cases += 1
    site = GraphSite(with_inputs, right)
    for name, inject in GRAPH_DEFECTS.items():
        tally = figure.defects.setdefault(name, GraphTally())
        for note, wrong in inject(site):
            if not _same(wrong, right):
                _count(tally, judged(wrong), Status.PASSED, f"{case.identifier}: {note}")
    for name, inject in LEGITIMATE_GRAPH_DIFFERENCES.items():
        tally = figure.legitimate.setdefault(name, GraphTally())
        for note, other in inject(site):
            what = f"{case.identifier}: {note}" if note else case.identifier
            _count(tally, judged(other), Status.FAILED, what)


def _same(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return all(one[name].tobytes() == array.tobytes() for name, array in other.items())


def _count(tally: GraphTally, status: Status, unexpected: Status, what: str) -> None:
    tally.tried += 1
    tally.failed += status is Status.FAILED
    if status is unexpected:
        tally.unexpected.append(what)
