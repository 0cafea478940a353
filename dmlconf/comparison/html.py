"""Comparisons as one HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dmlconf.comparison.compare import Change, Comparison
from dmlconf.comparison.reports import closing_sentence, shared_lines, suite_note
from dmlconf.comparison.timing import timing_lines
from dmlconf.documents.problems import printable
from dmlconf.reports.pages import render_page

__all__ = ["render_html"]

MOST_CASES: Final = 1000
"""Cases that the page lists of each change."""

_COUNTED: Final = (Change.FAILS_NEWLY, Change.MENDED, Change.STILL_FAILS)


def render_html(comparisons: Sequence[tuple[Comparison, tuple[str, str]]]) -> str:
    """Return comparisons, each with the names of its two runs, as HTML."""
    closing = [closing_sentence(comparison) for comparison, _ in comparisons]
    values = {
        "comparisons": [
            _values(number, comparison, names)
            for number, (comparison, names) in enumerate(comparisons)
        ]
    }
    return render_page("comparison.html", printable(f"dmlconf compare: {closing[0]}"), values)


def _values(number: int, comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    closing = closing_sentence(comparison)
    note = suite_note(comparison)
    return {
        "closing": printable(closing),
        "style": {"FAILED": "failed", "PASSED": "passed"}.get(closing.partition(":")[0], ""),
        "base": printable(names[0]),
        "new": printable(names[1]),
        "note": printable(note) if note else "",
        "differences": [
            {"name": printable(d.name), "base": printable(d.base), "new": printable(d.new)}
            for d in comparison.differences
        ],
        "groups": [
            {"headline": printable(line.sentence), "command": printable(line.command)}
            for line in shared_lines(comparison)
        ],
        "slower": [printable(line) for line in timing_lines(comparison.timing)],
        "changes": list(_changes(number, comparison)),
        "operators": list(_operators(comparison)),
    }


def _changes(number: int, comparison: Comparison) -> Iterator[dict[str, Any]]:
    for change in Change:
        entries = comparison.of(change)
        if not entries:
            continue
        listed = [] if change is Change.SAME else entries[:MOST_CASES]
        yield {
            "name": str(change),
            "anchor": f"{change.name.lower().replace('_', '-')}-{number}",
            "count": f"{len(entries):,}",
            "entries": [
                {"case": printable(entry.case), "detail": printable(entry.detail)}
                for entry in listed
            ],
            "more": f"{len(entries) - len(listed):,}" if 0 < len(listed) < len(entries) else "",
        }


def _operators(comparison: Comparison) -> Iterator[dict[str, Any]]:
    counts: dict[str, Counter[Change]] = {}
    for entry in comparison.changes:
        if entry.change in _COUNTED:
            counts.setdefault(entry.operator, Counter())[entry.change] += 1
    for name, of in sorted(counts.items()):
        yield {"name": printable(name), "cells": [f"{of[change]:,}" for change in _COUNTED]}
