"""The figure of graphs: which defects of graph compilers are noticed, and which variants fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dmlconf.backends.protocol import Outcome, Outputs
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.judging.judge import Against, Recorded
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.graph_defects import GRAPH_DEFECTS, RIGHT_VARIANTS, GraphSite
from dmlconf.strength.judging import CaseJudge
from dmlconf.strength.tallies import share
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status

__all__ = [
    "GRAPH_HEADINGS",
    "GraphFigure",
    "GraphTally",
    "graph_data",
    "graph_lines",
    "graph_sentence",
    "graph_share",
    "graph_table",
    "measure_graphs",
]

GRAPH_HEADINGS: Final = ("Defect or right variant", "Tried", "Fails", "Passes", "Share")


@dataclass(slots=True)
class GraphTally:
    """The results for one defect, or for one right variant.

    Attributes:
        tried: how often it changed a graph's outputs, or was computed.
        failed: how often the verdict failed.
        unexpected: the graphs whose verdict is wrong, with the place: a defect that passes, or a
            right variant that fails.
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
    """What a suite's graphs notice.

    Attributes:
        cases: how many graphs were used.
        defects: by name.
        variants: by name.
    """

    cases: int = 0
    defects: dict[str, GraphTally] = field(default_factory=dict)
    variants: dict[str, GraphTally] = field(default_factory=dict)

    def add(self, later: GraphFigure) -> None:
        """Add what later graphs notice."""
        self.cases += later.cases
        for own, others in ((self.defects, later.defects), (self.variants, later.variants)):
            for name, tally in others.items():
                own.setdefault(name, GraphTally()).add(tally)


def measure_graphs(
    cases: Iterable[Case], against: Against, advance: Callable[[], None] = lambda: None
) -> GraphFigure:
    """Return what the graphs among some cases notice.

    Without independent expected values, they are the reference's: what is measured
    here is the rule.

    Args:
        cases: those that are no graphs, expect a rejection or compare two forms do not count.
        against: gives the expected outcome of cases that state none.
        advance: is called after each case.
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
    for name, inject in RIGHT_VARIANTS.items():
        tally = figure.variants.setdefault(name, GraphTally())
        for note, other in inject(site):
            place = f"{case.identifier}: {note}" if note else case.identifier
            _count(tally, judged(other), Status.FAILED, place)


def _same(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return all(one[name].tobytes() == array.tobytes() for name, array in other.items())


def _count(tally: GraphTally, status: Status, unexpected: Status, place: str) -> None:
    tally.tried += 1
    tally.failed += status is Status.FAILED
    if status is unexpected:
        tally.unexpected.append(place)


def graph_share(figure: GraphFigure) -> float:
    """Return the percentage noticed of the defects that change an output."""
    return share(*_sums(figure.defects))


def _sums(tallies: Mapping[str, GraphTally]) -> tuple[int, int]:
    failed = sum(tally.failed for tally in tallies.values())
    return failed, sum(tally.tried for tally in tallies.values())


def graph_sentence(figure: GraphFigure) -> str:
    """Return the figure as one sentence."""
    caught, tried = _sums(figure.defects)
    refused, variants = _sums(figure.variants)
    return (
        f"by graph: {caught:,} of {tried:,} defects of graph compilers are noticed "
        f"({share(caught, tried):.2f}%), and {refused:,} of {variants:,} right variants fail, in "
        f"{figure.cases:,} graphs"
    )


def graph_table(figure: GraphFigure) -> Iterator[tuple[str, ...]]:
    """Yield a row for each defect and variant, as `GRAPH_HEADINGS` has its columns."""
    for name, tally in {**figure.defects, **figure.variants}.items():
        right = name in figure.variants
        passed = tally.tried - tally.failed
        successes = passed if right else tally.failed
        yield (
            f"right: {name}" if right else name,
            f"{tally.tried:,}",
            f"{tally.failed:,}",
            f"{passed:,}",
            f"{share(successes, tally.tried):.2f}%",
        )


def graph_lines(figure: GraphFigure) -> Iterator[str]:
    """Yield a line for each defect that passes, and each right variant that fails."""
    for name, tally in figure.defects.items():
        yield from (f"passes: {name}, {place}" for place in tally.unexpected)
    for name, tally in figure.variants.items():
        yield from (f"fails although it is right: {name}, {place}" for place in tally.unexpected)


def graph_data(figure: GraphFigure) -> dict[str, Any]:
    """Return the figure for JSON."""

    def rows(tallies: Mapping[str, GraphTally]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "tried": tally.tried,
                "failed": tally.failed,
                "unexpected": tally.unexpected,
            }
            for name, tally in tallies.items()
        ]

    return {
        "cases": figure.cases,
        "share": graph_share(figure),
        "defects": rows(figure.defects),
        "variants": rows(figure.variants),
    }
