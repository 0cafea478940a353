"""Histograms of the distance in ULP between actual and expected values, by operator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dmlconf.reports.runs import summary
from dmlconf.run_log.log import RunLog

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["Histograms", "bars", "columns"]

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = ".:-=+*#@"

_FIRST_STEPS: Final = ("0", "1", "2", "4", "8", "16", "64", "256")
_NAN: Final = "NaN"


@dataclass(frozen=True, slots=True)
class Histograms:
    """A histogram for each operator of which an output has other floating-point bits than expected.

    A histogram counts all elements of these outputs, also those with the expected bits.
    """

    log: RunLog

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        rows, _ = summary.operator_totals(self.log)
        with_histogram = [row for row in rows if row.histogram]
        if not with_histogram:
            return
        headings = columns([row.histogram for row in with_histogram])
        yield Text("Elements by their distance in ULP", style="bold")
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("", overflow="fold")
        for heading in headings:
            table.add_column(heading, justify="center", no_wrap=True)
        for row in with_histogram:
            cells = bars(row.histogram, headings, _ASCII if options.ascii_only else _BLOCKS)
            table.add_row(Text(row.operator), *cells)
        yield table
        yield ""


def columns(histograms: Sequence[Mapping[str, int]]) -> list[str]:
    """Return the headings of columns: each is the least distance in ULP that its column counts.

    If the largest distance is 5, the headings are 0, 1, 2 and 4. `1k+` stands for 1,024 and more.
    The last heading is `NaN` if a histogram has it.
    """
    largest = max((int(step) for one in histograms for step in one if step != _NAN), default=0)
    headings = [step for step in _FIRST_STEPS if int(step) <= largest]
    if largest >= 4 * int(_FIRST_STEPS[-1]):
        headings.append("1k+")
    if any(_NAN in one for one in histograms):
        headings.append(_NAN)
    return headings


def bars(histogram: Mapping[str, int], headings: Sequence[str], marks: str) -> Iterator[str]:
    """Yield a mark for each heading, a space if it has no elements.

    Heights are logarithmic, so that a few elements are seen beside millions.

    Args:
        histogram: numbers of elements by their distance in ULP, or by `NaN`.
        marks: the characters to choose from, from the lowest to the highest.
    """
    counts = dict.fromkeys(headings, 0)
    for step, count in histogram.items():
        counts[_heading(step, headings)] += count
    most = math.log1p(max(counts.values(), default=0))
    for count in counts.values():
        share = math.log1p(count) / most if most else 0
        yield marks[round(share * (len(marks) - 1))] if count else " "


def _heading(step: str, headings: Sequence[str]) -> str:
    if step == _NAN:
        return _NAN
    distance = int(step)
    if "1k+" in headings and distance >= 1024:
        return "1k+"
    fitting = [heading for heading in headings if heading.isdecimal() and int(heading) <= distance]
    return fitting[-1]
