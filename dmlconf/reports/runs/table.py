"""The terminal report's table: a row for each operator, each failing one, or each family."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.reports.runs import summary
from dmlconf.reports.runs.summary import OperatorTotals
from dmlconf.reports.terminal_text import styled
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.status import Status

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

__all__ = ["MOST_FAILING_ROWS", "MOST_ROWS", "OperatorsTable", "shown_table"]

MOST_ROWS: Final = 12
"""With more operators, the table has only those that fail or, if none fails, families."""

MOST_FAILING_ROWS: Final = 15
"""The most failing operators in a table that leaves out the others."""

_NAME_WIDTHS: Final = (45, 28)
"""Maximum lengths of a line of an operator's name; the first with which the table fits is taken."""

_SHORTEST_NAMES: Final = 15
"""Maximum length of a line of a name, if none of `_NAME_WIDTHS` fits."""

_TIME: Final = f"{'Time':>7}"
"""The heading of times, as wide as a time below ten minutes."""

_BROKEN_HEADINGS: Final = {
    "Unsupported": "Unsup-\nported",
    "Unchecked": "Un-\nchecked",
    "Not run": "Not\nrun",
    "Worst ULP": "Worst\nULP",
    "Limit used": "Limit\nused",
}


@dataclass(frozen=True, slots=True)
class _Layout:
    """A layout of the table; `gap` is the number of spaces between columns."""

    gap: int
    broken_headings: bool
    with_time: bool
    with_margin: bool = True


_LAYOUTS: Final = (
    _Layout(2, False, True),
    _Layout(1, True, True),
    _Layout(1, True, False),
    _Layout(1, True, False, with_margin=False),
)

_ARRANGEMENTS: Final = (
    *((layout, longest) for layout in _LAYOUTS[:-1] for longest in _NAME_WIDTHS),
    *((layout, _SHORTEST_NAMES) for layout in _LAYOUTS),
)
"""The layouts in the order in which they are tried, each with the maximum length of a line of a
name."""


@dataclass(frozen=True, slots=True)
class OperatorsTable:
    """A row for each operator or family, in the first layout that fits, or else the narrowest.

    Attributes:
        total: the last line, which is shown if there are several rows.
    """

    rows: Sequence[OperatorTotals]
    total: OperatorTotals
    heading: str = "Operator"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.measure import Measurement

        unbounded = options.update(max_width=10_000)
        table = None
        for layout, longest in _ARRANGEMENTS:
            table = _table(self, layout, longest, ascii_only=options.ascii_only)
            if Measurement.get(console, unbounded, table).maximum <= options.max_width:
                yield table
                return
        assert table is not None
        yield table


def shown_table(log: RunLog, *, every_operator: bool = False) -> Iterator[OperatorsTable | str]:
    """Yield the table of a run, and how many operators it leaves out.

    Args:
        every_operator: whether each operator has a row, even if there are more than `MOST_ROWS`.
    """
    rows, total = summary.operator_totals(log)
    if every_operator or len(rows) <= MOST_ROWS:
        yield OperatorsTable(rows, total)
        return
    failing = [row for row in rows if any(s.fails_run and n for s, n in row.counts.items())]
    if not failing:
        yield OperatorsTable(summary.family_totals(rows), total, "Family")
        return
    shown = failing[:MOST_FAILING_ROWS]
    yield OperatorsTable(shown, total)
    if len(failing) > len(shown):
        more = counted(len(failing) - len(shown), "more operator")
        yield f"and {more} with failures: -v lists all"
    count = len(rows) - len(failing)
    if count:
        cases = total.cases - sum(row.cases for row in failing)
        of = counted(count, "other operator")
        in_all = counted(cases, "case")
        yield f"{of}, {in_all}: no failures (-v lists {'them' if count != 1 else 'it'})"


def _table(of: OperatorsTable, layout: _Layout, longest: int, *, ascii_only: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = summary.shown_statuses(of.total)
    table = Table(
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        padding=(0, layout.gap - 1, 0, 0),
        show_footer=len(of.rows) > 1,
    )
    headings = [of.heading, "Cases", *(str(s).capitalize() for s in shown), "Worst ULP"]
    if layout.with_margin:
        headings.append("Limit used")
    if layout.with_time:
        headings.append(_TIME)
    titles = [_broken(heading) if layout.broken_headings else heading for heading in headings]
    footers = _cells(of.total, shown, layout, ascii_only=ascii_only)
    table.add_column(titles[0], "total", footer_style="bold", overflow="fold", min_width=8)
    for heading, footer in zip(titles[1:], footers, strict=True):
        table.add_column(heading, footer, justify="right", no_wrap=True, footer_style="bold")
    for row in of.rows:
        name = "\n".join(printable(line) for line in _name_lines(row.operator, longest))
        table.add_row(Text(name), *_cells(row, shown, layout, ascii_only=ascii_only))
    return table


def _name_lines(name: str, longest: int) -> list[str]:
    """Return a name in lines that end after underscores; only a single word exceeds `longest`."""
    lines = [""]
    for word in re.split(r"(?<=_)", name):
        if lines[-1] and len(lines[-1]) + len(word) > longest:
            lines.append("")
        lines[-1] += word
    return lines


def _broken(heading: str) -> str:
    """Return a heading on two lines, the first of them empty unless `_BROKEN_HEADINGS` has it."""
    return _BROKEN_HEADINGS.get(heading, f"\n{heading}")


def _cells(
    row: OperatorTotals, shown: list[Status], layout: _Layout, *, ascii_only: bool
) -> Iterator[Text]:
    yield styled(f"{row.cases:,}")
    for status in shown:
        count = row.counts.get(status, 0)
        yield styled(f"{count:,}", status.traits.style if count else "dim")
    worst = summary.ulp_text(row.worst_ulp)
    yield styled(worst.replace("∞", "inf") if ascii_only else worst)
    if layout.with_margin:
        yield styled(summary.margin_cell(row.margin))
    if layout.with_time:
        yield styled(_duration(row.seconds))


def _duration(seconds: float) -> str:
    if not seconds:
        return "-"
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"
