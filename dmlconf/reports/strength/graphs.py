"""Report the strength figure "by graph": which defects of graph compilers the graphs notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from dmlconf.cases.selecting.selection import graphs_in
from dmlconf.reports.strength.figure import Figure, FigureKind, Setting, Table, of_cases, too_low
from dmlconf.strength.graph_figure import GraphFigure, GraphTally, measure_graphs
from dmlconf.strength.sampling import sampled
from dmlconf.strength.tallies import share

__all__ = ["GRAPHS", "Graphs"]

_HEADINGS: Final = ("Defect or legitimate difference", "Tried", "Fails", "Passes", "Share")

_CHUNK: Final = 5
"""The most graphs that a process takes at a time, since a graph may take 20 s."""


@dataclass(frozen=True, slots=True)
class Graphs(Figure):
    """Defects of graph compilers, and how many of them graphs notice."""

    heading: ClassVar[str] = "By graph"
    figure: GraphFigure

    @property
    def share(self) -> float:
        """The percentage of the tried defects that graphs notice."""
        return share(*_sums(self.figure.defects))

    def sentences(self) -> Iterator[str]:
        """Yield the share that is noticed, and how many legitimate differences fail."""
        caught, tried = _sums(self.figure.defects)
        refused, legitimate = _sums(self.figure.legitimate)
        yield (
            f"by graph: {caught:,} of {tried:,} defects of graph compilers are noticed "
            f"({self.share:.2f}%), and {refused:,} of {legitimate:,} legitimate differences "
            f"fail, in {self.figure.cases:,} graphs"
        )

    def table(self) -> Table | None:
        """Return a table with a row for each defect and legitimate difference."""
        return Table(_HEADINGS, self._rows(), _HEADINGS[:1])

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for name, tally in {**self.figure.defects, **self.figure.legitimate}.items():
            right = name in self.figure.legitimate
            passed = tally.tried - tally.failed
            successes = passed if right else tally.failed
            yield (
                f"right: {name}" if right else name,
                f"{tally.tried:,}",
                f"{tally.failed:,}",
                f"{passed:,}",
                f"{share(successes, tally.tried):.2f}%",
            )

    def lacks(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the verdicts that are wrong."""
        yield "Verdicts that are wrong", self._wrong()

    def _wrong(self) -> Iterator[str]:
        for name, tally in self.figure.defects.items():
            yield from (f"passes: {name}, {what}" for what in tally.unexpected)
        for name, tally in self.figure.legitimate.items():
            yield from (f"fails although it is right: {name}, {what}" for what in tally.unexpected)

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {
            "graphs": {
                "cases": self.figure.cases,
                "share": self.share,
                "defects": _data(self.figure.defects),
                "variants": _data(self.figure.legitimate),
            }
        }

    def complaints(self, name: str, least: float) -> list[str]:
        """Return sentences on a share below `least`, and on legitimate differences that fail."""
        refused = sum(len(tally.unexpected) for tally in self.figure.legitimate.values())
        failing = [f"{refused:,} legitimate differences of graphs fail"] if refused else []
        return too_low("by graph", self.share, least) + failing


def _sums(tallies: Mapping[str, GraphTally]) -> tuple[int, int]:
    """Return how many defects or differences fail, and how many were tried."""
    failed = sum(tally.failed for tally in tallies.values())
    return failed, sum(tally.tried for tally in tallies.values())


def _data(tallies: Mapping[str, GraphTally]) -> list[dict[str, Any]]:
    return [
        {"name": name, "tried": tally.tried, "failed": tally.failed, "unexpected": tally.unexpected}
        for name, tally in tallies.items()
    ]


def _measured(setting: Setting) -> Graphs:
    cases = sampled(graphs_in(setting.plan), setting.sample, setting.seed)
    measure = partial(of_cases, measure_graphs)
    figure, _ = setting.measured(measure, GraphFigure(), cases, chunk=_CHUNK)
    return Graphs(figure)


GRAPHS: Final = FigureKind(
    "graphs",
    _measured,
    """\
- By graph: what graph compilers do wrong, at the nodes and edges of graphs: edges that read
  another buffer, dropped nodes, stale constants, roundings to FLOAT16, swapped inputs, and nodes
  with a defect. Each that changes an output must be noticed by that very graph. What a right
  compiler may do otherwise, such as holding FLOAT32 between nodes, is tried too, and must not
  fail.""",
    "defects of graph compilers",
    graphs_only=True,
)
