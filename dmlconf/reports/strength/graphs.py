"""The figure by graph: what graphs notice of the defects of graph compilers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.loading.loader import valid_case
from dmlconf.cases.model import PlannedCase
from dmlconf.cases.selecting.selection import graphs_in
from dmlconf.judging.judge import Against
from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength.figure import FigureKind, Setting, Table, bullets
from dmlconf.strength.graph_figure import GraphFigure, GraphTally, measure_graphs
from dmlconf.strength.sampling import sampled
from dmlconf.strength.tallies import share

__all__ = [
    "GRAPHS",
    "GRAPH_HEADINGS",
    "graph_data",
    "graph_lines",
    "graph_sentence",
    "graph_share",
    "graph_table",
]

GRAPH_HEADINGS: Final = ("Defect or legitimate difference", "Tried", "Fails", "Passes", "Share")

_CHUNK: Final = 5
"""Graphs that a process takes at a time: those of 200 nodes take 20 s each."""


def graph_share(figure: GraphFigure) -> float:
    """Return the percentage noticed of the defects that change an output."""
    return share(*_sums(figure.defects))


def _sums(tallies: Mapping[str, GraphTally]) -> tuple[int, int]:
    failed = sum(tally.failed for tally in tallies.values())
    return failed, sum(tally.tried for tally in tallies.values())


def graph_sentence(figure: GraphFigure) -> str:
    """Return the figure as one sentence."""
    caught, tried = _sums(figure.defects)
    refused, legitimate = _sums(figure.legitimate)
    return (
        f"by graph: {caught:,} of {tried:,} defects of graph compilers are noticed "
        f"({share(caught, tried):.2f}%), and {refused:,} of {legitimate:,} legitimate differences "
        f"fail, in {figure.cases:,} graphs"
    )


def graph_table(figure: GraphFigure) -> Iterator[tuple[str, ...]]:
    """Yield a row for each defect and legitimate difference, with the `GRAPH_HEADINGS`."""
    for name, tally in {**figure.defects, **figure.legitimate}.items():
        right = name in figure.legitimate
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
    """Yield a line for each defect that passes, and each legitimate difference that fails."""
    for name, tally in figure.defects.items():
        yield from (f"passes: {name}, {what}" for what in tally.unexpected)
    for name, tally in figure.legitimate.items():
        yield from (f"fails although it is right: {name}, {what}" for what in tally.unexpected)


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
        "variants": rows(figure.legitimate),
    }


@dataclass(frozen=True, slots=True)
class _Graphs:
    """Defects of graph compilers, and what graphs notice of them."""

    figure: GraphFigure

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed."""
        yield graph_sentence(self.figure)

    def table(self) -> Table | None:
        """Return a row for each defect and legitimate difference."""
        return Table(GRAPH_HEADINGS, graph_table(self.figure), GRAPH_HEADINGS[:1])

    def remarks(self) -> Iterator[str]:
        """Yield a line for each verdict that is wrong."""
        yield from graph_lines(self.figure)

    def markdown(self) -> list[str]:
        """Return the table, and the verdicts that are wrong."""
        lines = ["## By graph", "", *markdown_table(GRAPH_HEADINGS, graph_table(self.figure), "lr")]
        wrong = bullets(self.remarks())
        return [*lines, "", *(["Verdicts that are wrong:", "", *wrong, ""] if wrong else [])]

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"graphs": graph_data(self.figure)}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the share if it is lower, and how many legitimate differences fail."""
        noticed = graph_share(self.figure)
        complaints = [f"by graph: {noticed:.2f}%, less than {least:g}%"] if noticed < least else []
        refused = sum(len(tally.unexpected) for tally in self.figure.legitimate.values())
        return complaints + (
            [f"{refused:,} legitimate differences of graphs fail"] if refused else []
        )


def _of_cases(plan: Sequence[PlannedCase], against: Against) -> GraphFigure:
    return measure_graphs(map(valid_case, plan), against)


def _measured(setting: Setting) -> _Graphs:
    cases = sampled(graphs_in(setting.plan), setting.sample, setting.seed)
    figure, _ = setting.measured(_of_cases, GraphFigure(), cases, chunk=_CHUNK)
    return _Graphs(figure)


GRAPHS: Final = FigureKind(
    "graphs",
    _measured,
    """\
- By graph: what graph compilers do wrong, at every node and edge of every graph: edges that read
  another buffer, dropped nodes, stale constants, roundings to FLOAT16, swapped inputs, and nodes
  with a defect. Each that changes an output must be noticed by that very graph. What a right
  compiler may do otherwise, such as holding FLOAT32 between nodes, is tried too, and must not
  fail.""",
    "defects of graph compilers",
    graphs_only=True,
)
