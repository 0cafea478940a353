"""The HTML report on comparisons: what changed between two runs, or in several pairs of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dmlconf.cases.handles import handles
from dmlconf.comparison.compare import Change, Comparison
from dmlconf.comparison.timing import timing_lines
from dmlconf.documents.problems import printable
from dmlconf.reports.comparisons.changes import (
    Compared,
    closing_sentence,
    heading,
    shared_lines,
    suite_note,
)
from dmlconf.reports.pages import closing_style, render_page
from dmlconf.reports.runs.heading import tested_facts
from dmlconf.verdicts.status import Status

__all__ = ["render_html"]

MOST_CASES: Final = 10_000
"""The most cases that the page lists for each change; unchanged cases are only counted."""

_STYLES: Final = {
    Change.NEW_FAILURE: Status.FAILED.css_class,
    Change.FAILS_OTHERWISE: Status.FAILED.css_class,
    Change.STILL_FAILS: Status.FAILED.css_class,
    Change.FIXED: Status.PASSED.css_class,
    Change.STATUS: Status.UNCHECKED.css_class,
    Change.DRIFTED: Status.UNCHECKED.css_class,
}
"""The CSS classes that colour changes; other changes have no colour."""

_MAIN: Final = frozenset({"backend", "version", "adapter", "driver"})
"""The facts of a run whose differences are always visible; other differences are folded away."""

_COUNTED: Final = (Change.NEW_FAILURE, Change.FIXED, Change.STILL_FAILS)
"""The changes that the table of operators counts, a column for each."""


def render_html(comparisons: Sequence[Compared]) -> str:
    """Return comparisons as one HTML page; there must be at least one."""
    closing = [closing_sentence(comparison) for comparison, _ in comparisons]
    values = {
        "comparisons": [
            _values(number, comparison, names)
            for number, (comparison, names) in enumerate(comparisons)
        ]
    }
    title = printable(f"dmlconf compare: {closing[0]}")
    return render_page("comparison.html", title, values, None, "copy.js", "lists.js")


def _values(number: int, comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    closing = closing_sentence(comparison)
    note = suite_note(comparison)
    return {
        "closing": printable(closing),
        "style": closing_style(closing),
        "base": printable(names[0]),
        "new": printable(names[1]),
        "note": printable(note) if note else "",
        "same": [
            (name, printable(value))
            for name, value in tested_facts(comparison.new.header)
            if name != "Date" and (name, value) in tested_facts(comparison.base.header)
        ],
        "differences": [_dates(comparison), *_differences(comparison, main=True)],
        "details": list(_differences(comparison, main=False)),
        "columns": [heading(change) for change in _COUNTED],
        "groups": [
            {"headline": printable(line.sentence), "command": printable(line.command)}
            for line in shared_lines(comparison)
        ],
        "slower": [printable(line) for line in timing_lines(comparison.timing)],
        "changes": list(_changes(number, comparison)),
        "operators": list(_operators(comparison)),
    }


def _dates(comparison: Comparison) -> dict[str, str]:
    runs = {"base": comparison.base, "new": comparison.new}
    dates = {name: dict(tested_facts(run.header))["Date"] for name, run in runs.items()}
    return {"name": "date", **dates}


def _differences(comparison: Comparison, *, main: bool) -> Iterator[dict[str, str]]:
    for each in comparison.differences:
        if (each.name in _MAIN) is main:
            texts = {"name": each.name, "base": each.base, "new": each.new}
            yield {key: printable(text) for key, text in texts.items()}


def _changes(number: int, comparison: Comparison) -> Iterator[dict[str, Any]]:
    handle = handles(entry.case for entry in comparison.changes)
    for change in Change:
        entries = comparison.of(change)
        if not entries:
            continue
        listed = [] if change is Change.SAME else entries[:MOST_CASES]
        yield {
            "name": change.counted(len(entries)),
            "heading": heading(change),
            "style": _STYLES.get(change, ""),
            "anchor": f"{change.name.lower().replace('_', '-')}-{number}",
            "count": f"{len(entries):,}",
            "entries": [
                {
                    "case": printable(entry.case),
                    "handle": handle[entry.case],
                    "detail": printable(entry.detail),
                }
                for entry in listed
            ],
            "more": f"{len(entries) - len(listed):,}" if 0 < len(listed) < len(entries) else "",
        }


def _operators(comparison: Comparison) -> Iterator[dict[str, Any]]:
    counts: dict[str, Counter[Change]] = {}
    for entry in comparison.changes:
        if entry.change in _COUNTED:
            counts.setdefault(entry.operator, Counter())[entry.change] += 1
    for name, of in sorted(counts.items(), key=lambda item: (-item[1][_COUNTED[0]], item[0])):
        cells = [
            {"text": f"{of[change]:,}", "style": _STYLES[change] if of[change] else "soft"}
            for change in _COUNTED
        ]
        yield {"name": printable(name), "cells": cells}
