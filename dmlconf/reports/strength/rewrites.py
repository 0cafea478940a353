"""The figure by rewrite: which rewrites of graphs, and which of their conditions, are proven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength.figure import CHUNK, FigureKind, Setting, Table, bullets
from dmlconf.strength.parallel import measured_in_processes
from dmlconf.strength.rewrite_figure import (
    REWRITE_HEADINGS,
    RewriteFigure,
    measure_rewrites,
    rewrite_data,
    rewrite_lines,
    rewrite_sentence,
    rewrite_share,
    rewrite_table,
)

__all__ = ["REWRITES"]


@dataclass(frozen=True, slots=True)
class _Rewrites:
    """Rewrites of graph compilers, and which of them are proven."""

    figure: RewriteFigure

    def sentences(self) -> Iterator[str]:
        """Yield the share that is proven."""
        yield rewrite_sentence(self.figure)

    def table(self) -> Table | None:
        """Return a row for each rewrite."""
        rows = rewrite_table(self.figure)
        return Table(REWRITE_HEADINGS, rows, ("Rewrite", "Kind", "Right"))

    def remarks(self) -> Iterator[str]:
        """Yield a line for all that is missing."""
        yield from rewrite_lines(self.figure)

    def markdown(self) -> list[str]:
        """Return the table, and what is missing."""
        rows = markdown_table(REWRITE_HEADINGS, rewrite_table(self.figure), "llrlr")
        missing = bullets(self.remarks())
        lines = ["## By rewrite", "", *rows, ""]
        return [*lines, *(["What is missing:", "", *missing, ""] if missing else [])]

    def data(self) -> Mapping[str, Any]:
        """Return the figure for JSON."""
        return {"rewrites": rewrite_data(self.figure)}

    def complaints(self, name: str, least: float) -> list[str]:
        """Return the share if it is lower, and what is missing."""
        proven = rewrite_share(self.figure)
        if proven >= least:
            return []
        return [f"by rewrite: {proven:.2f}%, less than {least:g}%", *rewrite_lines(self.figure)]


def _measured(setting: Setting) -> _Rewrites:
    cases = [case for case in setting.plan if "rewrite" in case.template.data]
    with setting.progress(len(cases)) as advance:
        figure, _ = measured_in_processes(
            measure_rewrites,
            RewriteFigure(),
            cases,
            setting.suite_paths,
            jobs=setting.jobs,
            chunk=CHUNK,
            advance=advance,
        )
    return _Rewrites(figure)


REWRITES: Final = FigureKind(
    "rewrites",
    _measured,
    """\
- By rewrite: a catalogue of what graph compilers do to graphs, `schemas/rewrites.yaml`, with the
  conditions under which it is right. Each has a graph in which the rewritten graph passes, and each
  condition one in which it does not hold and the rewritten graph fails.""",
    "rewrites of graph compilers",
    graphs_only=True,
)
