"""The figure by rewrite: which rewrites of graphs, and which of their conditions, are proven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.cases.loading.rewrites import rewrites
from dmlconf.reports.markdown_text import table as markdown_table
from dmlconf.reports.strength.figure import FigureKind, Setting, Table, bullets
from dmlconf.strength.rewrite_figure import RIGHT, RewriteFigure, measure_rewrites
from dmlconf.strength.tallies import share

__all__ = [
    "REWRITES",
    "REWRITE_HEADINGS",
    "rewrite_data",
    "rewrite_lines",
    "rewrite_sentence",
    "rewrite_share",
    "rewrite_table",
]

REWRITE_HEADINGS: Final = ("Rewrite", "Kind", "Cases", "Right", "Conditions", "Proven")


def _needed() -> Iterator[tuple[str, str]]:
    """Yield the claims to prove of each rewrite: that it is right somewhere, and each condition."""
    for name, rewrite in rewrites().items():
        yield name, RIGHT
        for condition in rewrite.conditions:
            yield name, condition


def rewrite_share(figure: RewriteFigure) -> float:
    """Return the percentage of rewrites and conditions that every case of theirs proves."""
    needed = list(_needed())
    return share(sum(figure.proves(*key) for key in needed), len(needed))


def rewrite_sentence(figure: RewriteFigure) -> str:
    """Return the figure as one sentence."""
    needed = list(_needed())
    right = [key for key in needed if not key[1]]
    conditions = [key for key in needed if key[1]]
    return (
        f"by rewrite: {sum(figure.proves(*key) for key in right):,} of {len(right):,} rewrites "
        f"have a graph in which they are right, and "
        f"{sum(figure.proves(*key) for key in conditions):,} of {len(conditions):,} conditions a "
        f"graph that fails without them ({rewrite_share(figure):.2f}%), in "
        f"{sum(figure.cases.values()):,} graphs"
    )


def rewrite_table(figure: RewriteFigure) -> Iterator[tuple[str, ...]]:
    """Yield a row for each rewrite, as `REWRITE_HEADINGS` has its columns."""
    for name, rewrite in rewrites().items():
        keys = [(name, condition) for condition in (RIGHT, *rewrite.conditions)]
        right, *conditions = (figure.proves(*key) for key in keys)
        yield (
            name,
            rewrite.kind,
            f"{sum(figure.cases.get(key, 0) for key in keys):,}",
            "yes" if right else "no",
            f"{len(conditions):,}",
            f"{sum(conditions):,}",
        )


def rewrite_lines(figure: RewriteFigure) -> Iterator[str]:
    """Yield a line for each case that proves nothing, and each part that has no case."""
    for key in _needed():
        name, condition = key
        what = f"{name}, without {condition}" if condition else f"{name}, where it is right"
        if key not in figure.cases:
            yield f"no case: {what}"
        yield from (f"proves nothing: {what}: {line}" for line in figure.unproven.get(key, ()))


def rewrite_data(figure: RewriteFigure) -> dict[str, Any]:
    """Return the figure for JSON."""
    return {
        "cases": sum(figure.cases.values()),
        "share": rewrite_share(figure),
        "rewrites": [_data(figure, name) for name in rewrites()],
    }


def _data(figure: RewriteFigure, name: str) -> Mapping[str, Any]:
    rewrite = rewrites()[name]

    def part(condition: str) -> dict[str, Any]:
        key = name, condition
        return {
            "cases": figure.cases.get(key, 0),
            "proven": figure.proves(*key),
            "unproven": figure.unproven.get(key, []),
        }

    return {
        "name": name,
        "kind": rewrite.kind,
        "right": part(RIGHT),
        "conditions": {condition: part(condition) for condition in rewrite.conditions},
    }


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
    figure, _ = setting.measured(measure_rewrites, RewriteFigure(), cases)
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
    takes_all=True,
)
