"""Report which pairs of parameter values, such as of TransA and TransB, a suite covers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from dmlconf.coverage.combinations.measure import Combination, CombinationCoverage
from dmlconf.reports.markdown_text import table
from dmlconf.reports.suites.shares import percentage, total_share
from dmlconf.reports.terminal_text import plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["render_json", "render_markdown", "render_table"]

_FIRST: Final = 3
"""The most missing pairs of each operator that a table shows."""


def _sentence(rows: Sequence[CombinationCoverage]) -> str:
    covered, of = total_share(rows)
    excluded = sum(len(row.excluded) for row in rows)
    return (
        f"{covered:,} of {of:,} possible pairs of values covered ({percentage(covered, of):.2f}%); "
        f"{excluded:,} more are impossible"
    )


def _text(pair: Combination) -> str:
    return ", ".join(f"{name} = {value}" for name, value in pair)


def _lines(rows: Sequence[CombinationCoverage], *, excluded: bool) -> Iterator[str]:
    for row in rows:
        yield from (f"{row.operator.name}: {_text(pair)}" for pair in row.missing)
        if excluded:
            for pair, why in row.excluded.items():
                yield f"{row.operator.name}: {_text(pair)}: impossible: {why}"


def render_table(
    rows: Sequence[CombinationCoverage], *, missing: bool = False, excluded: bool = False
) -> RenderableType:
    """Return the report for the terminal.

    Args:
        missing: whether to list the pairs that no case has, instead of a table.
        excluded: whether to list also the impossible pairs and the reasons; implies `missing`.
    """
    from rich.console import Group
    from rich.text import Text

    closing = Text(_sentence(rows), "bold")
    if missing or excluded:
        return Group(*map(Text, _lines(rows, excluded=excluded)), closing)
    headings = ("Operator", "Parameters", "Covered", "First missing")
    table = plain_table(*headings, right=("Parameters", "Covered"))
    for row in rows:
        covered, of = row.share()
        first = "\n".join(map(_text, row.missing[:_FIRST]))
        style = "" if covered == of else "yellow"
        cells = row.operator.name, str(len(row.parameters)), f"{covered:,}/{of:,}", first
        table.add_row(*map(Text, cells), style=style)
    return Group(table, "", closing)


def render_markdown(rows: Sequence[CombinationCoverage]) -> str:
    """Return the report as Markdown, with the first missing pairs of each operator."""
    lines = ["# Pairs of values", "", f"{_sentence(rows)}.", ""]
    cells = []
    for row in rows:
        covered, of = row.share()
        first = "; ".join(map(_text, row.missing[:_FIRST]))
        cells.append((row.operator.name, str(len(row.parameters)), f"{covered:,}/{of:,}", first))
    lines += table(["Operator", "Parameters", "Covered", "First missing"], cells, "lrrl")
    return "\n".join(lines) + "\n"


def render_json(rows: Sequence[CombinationCoverage]) -> str:
    """Return the report as JSON, with all missing and impossible pairs."""
    covered, of = total_share(rows)
    data: dict[str, Any] = {
        "format": 1,
        "summary": {
            "possible": of,
            "covered": covered,
            "impossible": sum(len(row.excluded) for row in rows),
        },
        "operators": [
            {
                "operator": row.operator.name,
                "parameters": {each.name: list(each.values) for each in row.parameters},
                "possible": row.share()[1],
                "covered": row.share()[0],
                "missing": [dict(pair) for pair in row.missing],
                "impossible": [
                    {"pair": dict(pair), "because": why} for pair, why in row.excluded.items()
                ],
            }
            for row in rows
        ],
    }
    return json.dumps(data, indent=1)
