"""Report the cases that one of several runs alone passes or fails, for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dmlconf.cases.handles import handles
from dmlconf.comparison.outliers import Outlier
from dmlconf.documents.problems import printable
from dmlconf.reports.terminal_text import unwrapped
from dmlconf.verdicts.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["render_outliers"]

MOST_CASES: Final = 20
"""The most cases that are shown with every run's result."""


def render_outliers(found: Sequence[Outlier], names: Sequence[str]) -> Iterator[RenderableType]:
    """Yield how often each run stands alone, and the first `MOST_CASES` with every run's result.

    Args:
        found: the cases in which one run stands alone.
        names: the names of the runs, in the order of `Outlier.verdicts`.
    """
    from rich.text import Text

    yield Text("\nWhose result stands alone", "bold")
    if not found:
        yield Text("  none: in no case does one run alone pass or fail")
        return
    counts = Counter((each.run, each.fails) for each in found)
    for run, name in enumerate(names):
        yield Text(
            f"  {printable(name)} alone fails {counts[run, True]:,} and alone passes "
            f"{counts[run, False]:,}"
        )
    shown = found[:MOST_CASES]
    named = handles(each.case for each in shown)
    for each in shown:
        # On one line, the identifier can be copied.
        yield unwrapped(f"  {each.case} ({named[each.case]})", "")
        results = unwrapped("    ", "")
        for run, (name, verdict) in enumerate(zip(names, each.verdicts, strict=True)):
            results.append(f"{'; ' if run else ''}{printable(name)}: ")
            wrong = run == each.run and each.fails
            results.append(printable(_result(verdict)), "bold red" if wrong else "")
        yield results
    if len(found) > MOST_CASES:
        yield Text(f"  and {len(found) - MOST_CASES:,} more")


def _result(verdict: Verdict) -> str:
    """Return the first wrong element of a failure or, if none is known, the kind of its reason.

    For a failure without a reason, and for a verdict that does not fail the run, return the status.
    """
    if not verdict.status.fails_run or verdict.reason is None:
        return str(verdict.status)
    for each in verdict.reason.differences[:1]:
        return f"{each['actual']}, not {each['expected']}"
    return str(verdict.reason.kind)
