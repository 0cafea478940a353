"""The Markdown report on a run, for the summary page of a CI run."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Final

from dmlconf.documents.wording import counted
from dmlconf.reports.markdown_text import escaped, fenced, items, one_line, table
from dmlconf.reports.runs import remarks, shared_properties, summary
from dmlconf.reports.runs.failure_details import (
    Sources,
    difference_cells,
    difference_columns,
    rule_lines,
)
from dmlconf.reports.runs.shared_properties import ShownFailure
from dmlconf.run_log.log import Header, RunLog

__all__ = ["render"]

MOST_FAILURES: Final = 50
MOST_GROUPS: Final = 10


def render(log: RunLog) -> str:
    """Return the run as Markdown."""
    return "\n".join(_lines(log)) + "\n"


def _lines(log: RunLog) -> Iterator[str]:
    yield f"## {escaped(summary.closing_sentence(log))}"
    yield ""
    for note in (*remarks.hardly_judged_lines(log), *remarks.plain_notes(log)):
        if note:
            yield f"{escaped(note)}."
            yield ""
    yield from _shared(log)
    yield from _table(log)
    for section in remarks.SECTIONS:
        yield from _listed(section.heading, section.lines(log))
    entries = shared_properties.shown_failures(log, MOST_FAILURES)
    sources = Sources()
    for shown in entries:
        yield ""
        yield from _failure(log.header, shown, sources)
    left = shared_properties.not_shown(log, entries)
    if left:
        yield ""
        yield f"and {left:,} more"
    yield ""
    yield "<details><summary>Environment</summary>"
    yield ""
    for name, value in summary.environment_facts(log.header):
        yield f"- {name}: {escaped(value)}"
    yield ""
    yield "</details>"


def _listed(heading: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{heading}:"
        yield ""
        yield from items(lines)


def _table(log: RunLog) -> Iterator[str]:
    rows, total = summary.operator_totals(log)
    shown = summary.shown_statuses(total)
    statuses = [str(status).capitalize() for status in shown]
    headings = ["Operator", "Cases", *statuses, "Worst ULP", "Limit used"]
    cells = [
        [
            escaped(row.operator),
            f"{row.cases:,}",
            *(f"{row.counts.get(status, 0):,}" for status in shown),
            summary.ulp_text(row.worst_ulp),
            summary.margin_cell(row.margin),
        ]
        for row in ((*rows, total) if len(rows) > 1 else rows)
    ]
    yield from table(headings, cells, "lr")


def _shared(log: RunLog) -> Iterator[str]:
    lines = [line for line in shared_properties.shared_lines(log) if not line.says_little]
    if not lines:
        return
    yield f"### {shared_properties.HEADING}"
    yield ""
    handles = summary.failing_handles(log)
    for line in lines[:MOST_GROUPS]:
        yield f"- {escaped(line.sentence)}"
        yield ""
        show = summary.show_command(log.header, handles[line.shared.simplest.case])
        yield from (f"  {fenced}".rstrip() for fenced in fenced([line.command, show], "sh"))
    if len(lines) > MOST_GROUPS:
        yield f"and {counted(len(lines) - MOST_GROUPS, 'more group')}"
        yield ""


def _failure(header: Header, shown: ShownFailure, sources: Sources) -> Iterator[str]:
    verdict = shown.verdict
    kind = f": {verdict.reason.kind}" if verdict.reason else ""
    kind += shared_properties.alike(shown)
    # Markdown's escapes have no effect on a line of HTML.
    heading = html.escape(one_line(f"{verdict.status}: {verdict.case}{kind}"))
    yield f"<details><summary>{heading}</summary>"
    yield ""
    if verdict.reason is not None:
        yield escaped(verdict.reason.message)
        yield ""
        if verdict.reason.differences:
            names = difference_columns(verdict.reason.differences)
            cells = (difference_cells(verdict, each) for each in verdict.reason.differences)
            rows = ([escaped(each[name]) for name in names] for each in cells)
            yield from table([name.capitalize() for name in names], rows, "llr")
            yield ""
        if verdict.reason.diagnostics:
            yield from fenced(summary.diagnostic_lines(verdict.reason), "text")
    for line in rule_lines(header, verdict, sources):
        yield escaped(line)
        yield ""
    if verdict.location:
        yield f"at {escaped(verdict.location)}"
        yield ""
    yield from fenced([summary.repeat_command(header, verdict)], "sh")
    yield "</details>"
