"""Markdown for the summary page of a CI run."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Final

from dmlconf.documents.problems import printable
from dmlconf.reports import remarks, shared_properties, summary
from dmlconf.reports.failure_details import (
    Sources,
    difference_cells,
    difference_columns,
    rule_lines,
)
from dmlconf.reports.shared_properties import ShownFailure
from dmlconf.run_log.log import Header, RunLog

__all__ = ["render"]

MOST_FAILURES: Final = 50
MOST_GROUPS: Final = 10

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$=]|^-|(?<=\d)\.(?=\s))")


def render(log: RunLog) -> str:
    """Return the run as Markdown: the closing sentence, a table by operator, each failure."""
    return "\n".join(_lines(log)) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _lines(log: RunLog) -> Iterator[str]:
    yield f"## {_escaped(summary.closing_sentence(log))}"
    yield ""
    unchecked = remarks.plain_notes(log)
    for note in (*remarks.room_lines(log), *unchecked):
        if note:
            yield f"{_escaped(note)}."
            yield ""
    yield from _shared(log)
    yield from _table(log)
    yield from _listed(remarks.VARIANTS_HEADING, remarks.variant_lines(log))
    yield from _listed(remarks.WARNINGS_HEADING, remarks.warning_lines(log))
    yield from _listed("Nearest to their limit", summary.nearest_lines(log))
    yield from _listed(remarks.CIRCUMSTANCES_HEADING, remarks.circumstance_lines(log))
    yield from _listed(remarks.FAR_HEADING, remarks.far_lines(log))
    yield from _listed(remarks.KNOWN_FAULTS_HEADING, remarks.known_fault_lines(log))
    yield from _listed(remarks.WAIVERS_HEADING, remarks.waiver_lines(log))
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
        yield f"- {name}: {_escaped(value)}"
    yield ""
    yield "</details>"


def _listed(heading: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{heading}:"
        yield ""
        yield from (f"- {_escaped(line)}" for line in lines)


def _table(log: RunLog) -> Iterator[str]:
    rows, total = summary.operator_totals(log)
    shown = summary.shown_statuses(total)
    statuses = [str(status).capitalize() for status in shown]
    headings = ["Operator", "Cases", *statuses, "Worst ULP", "Limit used"]
    yield f"| {' | '.join(headings)} |"
    yield f"|---|{'---:|' * (len(headings) - 1)}"
    for row in (*rows, total) if len(rows) > 1 else rows:
        counts = [f"{row.counts.get(status, 0):,}" for status in shown]
        figures = summary.number(row.worst_ulp), summary.margin_cell(row.margin)
        cells = [_escaped(row.operator), f"{row.cases:,}", *counts, *figures]
        yield f"| {' | '.join(cells)} |"


def _shared(log: RunLog) -> Iterator[str]:
    lines = [line for line in shared_properties.shared_lines(log) if not line.says_little]
    if not lines:
        return
    yield f"### {shared_properties.HEADING}"
    yield ""
    for line in lines[:MOST_GROUPS]:
        yield f"- {_escaped(line.sentence)}"
        yield ""
        yield from (f"  {fenced}".rstrip() for fenced in _fenced([line.command], "sh"))
    if len(lines) > MOST_GROUPS:
        yield f"and {len(lines) - MOST_GROUPS:,} more groups"
        yield ""


def _failure(header: Header, shown: ShownFailure, sources: Sources) -> Iterator[str]:
    verdict = shown.verdict
    kind = f": {verdict.reason.kind}" if verdict.reason else ""
    kind += shared_properties.alike(shown)
    # Markdown's escapes have no effect on a line of HTML.
    heading = html.escape(_one_line(f"{verdict.status}: {verdict.case}{kind}"))
    yield f"<details><summary>{heading}</summary>"
    yield ""
    if verdict.reason is not None:
        yield _escaped(verdict.reason.message)
        yield ""
        if verdict.reason.differences:
            names = difference_columns(verdict.reason.differences)
            yield f"| {' | '.join(name.capitalize() for name in names)} |"
            yield f"|---|---|{'---:|' * (len(names) - 2)}"
            for difference in verdict.reason.differences:
                cells = difference_cells(verdict, difference)
                yield f"| {' | '.join(_escaped(cells[name]) for name in names)} |"
            yield ""
        if verdict.reason.diagnostics:
            yield from _fenced(summary.diagnostic_lines(verdict.reason), "text")
    for line in rule_lines(header, verdict, sources):
        yield _escaped(line)
        yield ""
    if verdict.location:
        yield f"at {_escaped(verdict.location)}"
        yield ""
    yield from _fenced([summary.repeat_command(header, verdict)], "sh")
    yield "</details>"


def _fenced(lines: Sequence[str], language: str) -> Iterator[str]:
    """Yield lines fenced by more backticks than they have in a row."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from map(printable, lines)
    yield fence
    yield ""
