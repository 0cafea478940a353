"""Report, for the terminal, the cases in which one run stands alone, as `comparison` finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dmlconf.comparison.outliers import Outlier
from dmlconf.verdicts.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["render_outliers"]

MOST_CASES: Final = 20


def render_outliers(found: Sequence[Outlier], names: Sequence[str]) -> Iterator[RenderableType]:
    """Yield how often each run stands alone, and the first cases with every run's result.

    Args:
        found: the cases in which one run stands alone.
        names: the names of the runs, in the order of `Outlier.verdicts`.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    yield Text("\nWhose result stands alone", "bold")
    if not found:
        yield Text("  none: in no case does one run differ from all others")
        return
    counts = Counter((each.run, each.fails) for each in found)
    for run, name in enumerate(names):
        yield Text(
            f"  {name} alone fails {counts[run, True]:,} and alone passes {counts[run, False]:,}"
        )
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("Case", *names):
        table.add_column(heading, overflow="fold")
    for each in found[:MOST_CASES]:
        table.add_row(
            Text(each.case),
            *(
                Text(_result(verdict), "bold red" if index == each.run and each.fails else "")
                for index, verdict in enumerate(each.verdicts)
            ),
        )
    yield table
    if len(found) > MOST_CASES:
        yield Text(f"  and {len(found) - MOST_CASES:,} more")


def _result(verdict: Verdict) -> str:
    """Return a failure's first wrong element, or else its reason; the status of any other case."""
    if not verdict.status.fails_run or verdict.reason is None:
        return str(verdict.status)
    for each in verdict.reason.differences[:1]:
        return f"{each['actual']}, not {each['expected']}"
    return str(verdict.reason.kind)
