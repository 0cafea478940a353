"""The terminal report's table by operator, laid out as the width allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dmlconf.documents.problems import printable
from dmlconf.reports import summary
from dmlconf.reports.summary import OperatorTotals
from dmlconf.runner.log import RunLog
from dmlconf.runner.verdict import Status

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

__all__ = ["OperatorsTable"]

_TIME: Final = f"{'Time':>7}"
"""As wide as any time, so that the layout does not depend on the times."""

_BROKEN_HEADINGS: Final = {
    "Unsupported": "Unsup-\nported",
    "Unchecked": "Un-\nchecked",
    "Not run": "Not\nrun",
    "Worst ULP": "Worst\nULP",
    "Limit used": "Limit\nused",
}


@dataclass(frozen=True, slots=True)
class _Layout:
    """The space in a table: between columns, and for headings, times and margins."""

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


@dataclass(frozen=True, slots=True)
class OperatorsTable:
    """A row for each operator. No number is cut off if a narrower layout has space for it.

    Attributes:
        log: the run's log.
    """

    log: RunLog

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in the widest layout that fits."""
        from rich.measure import Measurement

        unbounded = options.update(max_width=10_000)
        for layout in _LAYOUTS:
            table = _table(self.log, layout, ascii_only=options.ascii_only)
            if Measurement.get(console, unbounded, table).maximum <= options.max_width:
                break
        yield table


def _table(log: RunLog, layout: _Layout, *, ascii_only: bool) -> Table:
    from rich import box
    from rich.table import Table

    rows, total = summary.operator_totals(log)
    shown = summary.shown_statuses(total)
    table = Table(
        box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, layout.gap - 1, 0, 0),
        show_footer=len(rows) > 1,
    )  # fmt: skip
    headings = ["Operator", "Cases", *(str(s).capitalize() for s in shown), "Worst ULP"]
    if layout.with_margin:
        headings.append("Limit used")
    if layout.with_time:
        headings.append(_TIME)
    titles = [_broken(heading) if layout.broken_headings else heading for heading in headings]
    footers = _cells(total, shown, layout, ascii_only=ascii_only)
    table.add_column(titles[0], "total", footer_style="bold", overflow="fold", min_width=8)
    for heading, footer in zip(titles[1:], footers, strict=True):
        table.add_column(heading, footer, justify="right", no_wrap=True, footer_style="bold")
    for row in rows:
        table.add_row(_text(row.operator), *_cells(row, shown, layout, ascii_only=ascii_only))
    return table


def _broken(heading: str) -> str:
    """Return a heading on two lines, the first of them empty if it is short."""
    return _BROKEN_HEADINGS.get(heading, f"\n{heading}")


def _cells(
    row: OperatorTotals, shown: list[Status], layout: _Layout, *, ascii_only: bool
) -> Iterator[Text]:
    yield _text(f"{row.cases:,}")
    for status in shown:
        count = row.counts.get(status, 0)
        yield _text(f"{count:,}", status.traits.style if count else "dim")
    worst = summary.number(row.worst_ulp)
    yield _text(worst.replace("∞", "inf") if ascii_only else worst)
    if layout.with_margin:
        yield _text(summary.margin_cell(row.margin))
    if layout.with_time:
        yield _text(_duration(row.seconds))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(printable(text), style)


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
