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
from dmlconf.strength.graph_figure import (
    GRAPH_HEADINGS,
    GraphFigure,
    graph_data,
    graph_lines,
    graph_sentence,
    graph_share,
    graph_table,
    measure_graphs,
)
from dmlconf.strength.parallel import measured_in_processes
from dmlconf.strength.sampling import sampled

__all__ = ["GRAPHS"]

_CHUNK: Final = 5
"""Graphs that a process takes at a time: those of 200 nodes take 20 s each."""


@dataclass(frozen=True, slots=True)
class _Graphs:
    """Defects of graph compilers, and what graphs notice of them."""

    figure: GraphFigure

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed."""
        yield graph_sentence(self.figure)

    def table(self) -> Table | None:
        """Return a row for each defect and variant."""
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
        """Return the share if it is lower, and how many right variants fail."""
        noticed = graph_share(self.figure)
        complaints = [f"by graph: {noticed:.2f}%, less than {least:g}%"] if noticed < least else []
        refused = sum(len(tally.unexpected) for tally in self.figure.variants.values())
        return complaints + ([f"{refused:,} correct variants of graphs fail"] if refused else [])


def _of_cases(plan: Sequence[PlannedCase], against: Against) -> GraphFigure:
    return measure_graphs(map(valid_case, plan), against)


def _measured(setting: Setting) -> _Graphs:
    cases = sampled(graphs_in(setting.plan), setting.sample, setting.seed)
    with setting.progress(len(cases)) as advance:
        figure, _ = measured_in_processes(
            _of_cases,
            GraphFigure(),
            cases,
            setting.suite_paths,
            jobs=setting.jobs,
            chunk=_CHUNK,
            advance=advance,
        )
    return _Graphs(figure)


GRAPHS: Final = FigureKind(
    "graphs",
    _measured,
    """\
- By graph: what graph compilers do wrong, at every place of every graph: edges that read another
  buffer, dropped nodes, stale constants, roundings to FLOAT16, swapped inputs, and nodes with a
  defect. Each that changes an output must be noticed by that very graph. What a right compiler may
  do otherwise, such as holding FLOAT32 between nodes, is tried too, and must not fail.""",
    "defects of graph compilers",
    graphs_only=True,
)
