"""Markdown for the summary page of a CI run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dmlconf.documents.problems import printable
from dmlconf.reports import summary
from dmlconf.runner.log import Header, RunLog
from dmlconf.runner.verdict import Status, Verdict

__all__ = ["render"]

MOST_FAILURES: Final = 50

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_ALWAYS: Final = (Status.PASSED, Status.FAILED, Status.BROKEN)


def render(log: RunLog) -> str:
    """Return the run as Markdown: the closing sentence, a table by operator, each failure."""
    return "\n".join(_lines(log)) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(" ".join(text.split())))


def _lines(log: RunLog) -> Iterator[str]:
    yield f"## {_escaped(summary.closing_sentence(log))}"
    yield ""
    note = summary.unchecked_note(log)
    if note:
        yield f"{_escaped(note)}."
        yield ""
    yield from _table(log)
    failing = summary.failures(log)
    for verdict in failing[:MOST_FAILURES]:
        yield ""
        yield from _failure(log.header, verdict)
    if len(failing) > MOST_FAILURES:
        yield ""
        yield f"and {len(failing) - MOST_FAILURES:,} more"
    yield ""
    yield "<details><summary>Environment</summary>"
    yield ""
    for name, value in summary.environment_facts(log.header):
        yield f"- {name}: {_escaped(value)}"
    yield ""
    yield "</details>"


def _table(log: RunLog) -> Iterator[str]:
    rows, total = summary.operator_totals(log)
    shown = [s for s in Status if s in _ALWAYS or total.counts.get(s)]
    headings = ["Operator", "Cases", *(str(s).capitalize() for s in shown), "Worst ULP"]
    yield f"| {' | '.join(headings)} |"
    yield f"|---|{'---:|' * (len(headings) - 1)}"
    for row in (*rows, total):
        counts = [f"{row.counts.get(status, 0):,}" for status in shown]
        cells = [_escaped(row.operator), f"{row.cases:,}", *counts, summary.number(row.worst_ulp)]
        yield f"| {' | '.join(cells)} |"


def _failure(header: Header, verdict: Verdict) -> Iterator[str]:
    kind = verdict.reason.kind if verdict.reason else ""
    told = _escaped(f"{verdict.status}: {verdict.case}: {kind}")
    yield f"<details><summary>{told}</summary>"
    yield ""
    if verdict.reason is not None:
        yield _escaped(verdict.reason.message)
        yield ""
        if verdict.reason.differences:
            yield "| Tensor | At | Expected | Actual |"
            yield "|---|---|---:|---:|"
            for difference in verdict.reason.differences:
                keys = ("tensor", "coordinates", "expected", "actual")
                yield f"| {' | '.join(_escaped(str(difference[key])) for key in keys)} |"
            yield ""
        if verdict.reason.diagnostics:
            yield from _fenced(verdict.reason.diagnostics, "text")
    yield from _fenced(summary.repeat_command(header, verdict), "sh")
    yield "</details>"


def _fenced(text: str, language: str) -> Iterator[str]:
    """Fence text by more backticks than it has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from map(printable, text.split("\n"))
    yield fence
    yield ""
