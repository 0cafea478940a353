"""Report what changed between two runs: for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dmlconf.comparison.compare import Change, Changed, Comparison
from dmlconf.comparison.timing import timing_lines
from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted
from dmlconf.reports.markdown_text import code, escaped, items, table
from dmlconf.reports.runs import shared_properties
from dmlconf.reports.runs.shared_properties import SharedLine
from dmlconf.reports.runs.summary import missing_shards_text
from dmlconf.reports.spreading import spread
from dmlconf.reports.terminal_text import styled, unwrapped

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "Compared",
    "closing_sentence",
    "comparison_data",
    "heading",
    "render_json",
    "render_markdown",
    "render_terminal",
    "shared_lines",
    "suite_note",
]

VERSION: Final = 1
"""Version of the JSON form; it increases when readers of the old form could be misled."""

SLOWER: Final = "Slower than noise allows"
"""The heading above the operators that took longer than in the base run."""

MOST_GROUPS: Final = 10
"""The most groups of new failures that a report shows."""

MOST_CASES: Final = 10
"""The most cases that the terminal lists for each change, unless verbose; Markdown lists ten times
as many."""

_STYLES: Final = {
    Change.NEW_FAILURE: "bold red",
    Change.FAILS_OTHERWISE: "red",
    Change.STILL_FAILS: "red",
    Change.FIXED: "green",
    Change.STATUS: "yellow",
    Change.DRIFTED: "yellow",
    Change.BITS: "cyan",
    Change.NEW: "",
    Change.GONE: "",
    Change.SAME: "dim",
}

Compared = tuple[Comparison, tuple[str, str]]
"""A comparison, and the names of the base and of the new run."""

_LISTED: Final = tuple(change for change in Change if change is not Change.SAME)


def closing_sentence(comparison: Comparison) -> str:
    """Return one sentence: how many failures are new, how many cases both runs have, and which runs
    are incomplete."""
    newly = len(comparison.of(Change.NEW_FAILURE))
    count = f"{counted(comparison.shared, 'case')} in both runs"
    incomplete = list(_incomplete(comparison))
    if newly:
        failures = counted(newly, "new failure")
        return "; ".join((f"FAILED: {failures}", count, *incomplete))
    if not comparison.shared:
        nothing = "NOTHING TO COMPARE: the runs have no case in common"
        return "; ".join((nothing, *incomplete))
    passed = "PASSED" if comparison.new.complete else "INCOMPLETE"
    return "; ".join((f"{passed}: no new failure", count, *incomplete))


def _incomplete(comparison: Comparison) -> Iterator[str]:
    for name, run in (("the base", comparison.base), ("the new run", comparison.new)):
        if not run.complete:
            shards = missing_shards_text(run.header)
            yield f"of {name}, {shards}" if shards else f"{name} ended early"


def shared_lines(comparison: Comparison) -> list[SharedLine]:
    """Return up to `MOST_GROUPS` lines about what new failures share, the largest group first."""
    if not comparison.fails_newly:
        return []
    return shared_properties.shared_lines(comparison.new_failures)[:MOST_GROUPS]


def suite_note(comparison: Comparison) -> str | None:
    """Return a note if the runs are of different suites, else None."""
    base, new = comparison.base.header, comparison.new.header
    if base.suite_digest == new.suite_digest:
        return None
    only = [len(comparison.of(change)) for change in (Change.GONE, Change.NEW)]
    return (
        f"the runs are of different suites: {counted(comparison.shared, 'case')} in both, "
        f"{only[0]:,} only in the base, {only[1]:,} only in the new run"
    )


def render_terminal(
    comparison: Comparison, names: tuple[str, str], *, verbose: bool = False, quiet: bool = False
) -> RenderableType:
    """Return the report for the terminal.

    Args:
        verbose: whether to list all cases of each change; unchanged cases are never listed.
        quiet: whether to show only new failures, what they share, and the closing sentence.
    """
    from rich.console import Group

    parts: list[RenderableType] = []
    if not quiet:
        parts += [_differences(comparison, names), ""]
        note = suite_note(comparison)
        parts += [styled(note, "yellow"), ""] if note else []
        parts += [_counts(comparison), ""]
    for line in shared_lines(comparison):
        parts += [styled(line.sentence), unwrapped(f"  {line.command}", "cyan")]
    parts += [""] if comparison.fails_newly else []
    for change in (Change.NEW_FAILURE,) if quiet else _LISTED:
        parts += _list(change, comparison.of(change), verbose=verbose)
    lines = [] if quiet else timing_lines(comparison.timing)
    if lines:
        parts += [styled(SLOWER, "bold"), *(styled(f"  {line}") for line in lines), ""]
    return Group(*parts, _closing(comparison))


def _closing(comparison: Comparison) -> Text:
    sentence = closing_sentence(comparison)
    styles = {"PASSED": "bold green", "FAILED": "bold red"}
    return styled(sentence, styles.get(sentence.partition(":")[0], "bold yellow"))


def _differences(comparison: Comparison, names: tuple[str, str]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", *map(printable, names)):
        table.add_column(heading, overflow="fold")
    rows = comparison.differences
    for difference in rows:
        table.add_row(
            *map(styled, (difference.name, difference.base or "-", difference.new or "-"))
        )
    if not rows:
        table.add_row(styled("the same environment, suite and options", "dim"), "", "")
    return table


def _counts(comparison: Comparison) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    counts = Counter(entry.change for entry in comparison.changes)
    for change in Change:
        if counts[change]:
            words = styled(change.counted(counts[change]), _STYLES[change])
            table.add_row(f"{counts[change]:,}", words)
    return table


def heading(change: Change) -> str:
    """Return a heading for the cases with this change, such as `New failures`."""
    label = "new failures" if change is Change.NEW_FAILURE else change.label
    return f"{label[0].upper()}{label[1:]}"


def _list(change: Change, entries: Sequence[Changed], *, verbose: bool) -> Iterator[RenderableType]:
    if not entries:
        return
    from rich.text import Text

    yield styled(heading(change), "bold")
    shown = entries if verbose else _spread(entries, MOST_CASES)
    for entry in shown:
        detail = f": {entry.detail}" if entry.detail else ""
        line = Text(f"  {printable(entry.case)}", _STYLES[change], no_wrap=True, overflow="ignore")
        yield line.append(printable(detail), "default")
    if len(entries) > len(shown):
        yield styled(f"  and {len(entries) - len(shown):,} more: -v shows all", "dim")
    yield ""


def _spread(entries: Sequence[Changed], most: int) -> list[Changed]:
    """Return at most `most` entries, of as many operators as possible, in the same order."""
    shown = islice(spread(entries, lambda entry: entry.operator), most)
    return sorted(shown, key=entries.index)


def render_markdown(comparisons: Sequence[Compared]) -> str:
    """Return comparisons as Markdown, with up to 100 cases of each change.

    Unchanged cases are counted and not listed.
    """
    return "\n".join(_markdown(*each) for each in comparisons)


def _markdown(comparison: Comparison, names: tuple[str, str]) -> str:
    lines = [f"# {escaped(closing_sentence(comparison))}", ""]
    differences = (
        map(escaped, (each.name, each.base, each.new)) for each in comparison.differences
    )
    lines += table(["", *map(escaped, names)], differences)
    lines.append("")
    note = suite_note(comparison)
    lines += [f"{note[0].upper()}{note[1:]}.", ""] if note else []
    counts = Counter(entry.change for entry in comparison.changes)
    changes = ([change.label, f"{counts[change]:,}"] for change in Change if counts[change])
    lines += table(["Change", "Cases"], changes, "lr")
    lines.append("")
    for line in shared_lines(comparison):
        lines += [f"- {escaped(line.sentence)}: {code(line.command)}"]
    lines += [""] if comparison.fails_newly else []
    for change in _LISTED:
        entries = comparison.of(change)
        if entries:
            lines += [f"## {heading(change)}", ""]
            shown = _spread(entries, 10 * MOST_CASES)
            lines += [f"- {code(entry.case)}: {escaped(entry.detail)}" for entry in shown]
            more = len(entries) - len(shown)
            lines += [f"- and {more:,} more"] if more else []
            lines.append("")
    slower = timing_lines(comparison.timing)
    if slower:
        lines += [f"## {SLOWER}", "", *items(slower), ""]
    return "\n".join(lines)


def comparison_data(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """Return the comparison as plain values; unchanged cases are counted and not listed."""
    counts = Counter(entry.change for entry in comparison.changes)
    return {
        "base": names[0],
        "new": names[1],
        "base_complete": comparison.base.complete,
        "new_complete": comparison.new.complete,
        "differences": [
            {"name": difference.name, "base": difference.base, "new": difference.new}
            for difference in comparison.differences
        ],
        "summary": {str(change): counts[change] for change in Change},
        "shared_properties": [
            {"sentence": line.sentence, "command": line.command}
            for line in shared_lines(comparison)
        ],
        "cases": [
            {
                "case": entry.case,
                "operator": entry.operator,
                "change": entry.change,
                "base": entry.base.status if entry.base else None,
                "new": entry.new.status if entry.new else None,
                "detail": entry.detail,
            }
            for entry in comparison.changes
            if entry.change is not Change.SAME
        ],
        "slower": [
            {
                **asdict(slowdown),
                "ratio": round(slowdown.ratio, 3),
                "least": round(slowdown.least, 3),
            }
            for slowdown in comparison.timing.slower
        ],
    }


def render_json(comparisons: Sequence[Compared]) -> str:
    """Return comparisons as one JSON object, of the form `schemas/comparison.schema.json`."""
    data = {
        "schema": "dmlconf-comparison",
        "version": VERSION,
        "comparisons": [comparison_data(comparison, names) for comparison, names in comparisons],
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
