"""The HTML report on a run: one page with filters, links to cases and pictures of errors."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

from dmlconf.cases.handles import handles_in_order
from dmlconf.documents.problems import printable
from dmlconf.reports.pages import closing_style, compact_json, page_parts
from dmlconf.reports.runs import heading, remarks, shared_properties, summary
from dmlconf.reports.runs.failure_details import difference_cells, difference_columns
from dmlconf.reports.runs.summary import OperatorTotals
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.choosing import cases, failing
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import Reason, Status, Verdict

__all__ = ["render", "render_parts"]

MOST_GROUPS: Final = 20
"""The most groups of failures that the page shows."""

MOST_STATIC: Final = 50
"""The most failures that the page shows if scripts are off."""

MOST_OPEN_NOTES: Final = 3
"""The most remarks that the page shows unfolded; if there are more, all are folded."""

_TOGETHER: Final = 256
"""How many cases are turned into JSON and compressed at a time."""

_BAR: Final = 120
"""The width of the bar that shows an operator's cases by status, in units of the picture."""

_NARROWEST: Final = 4
"""The least width of a status in the bar, in these units, so that one failing case is seen."""


def render(log: RunLog) -> str:
    """Return the report as HTML."""
    return "".join(render_parts(log))


def render_parts(log: RunLog) -> Iterator[str]:
    """Yield the text of `render` in parts, so that a report of any length takes little memory."""
    counts = summary.status_counts(log)
    rows, total = summary.operator_totals(log)
    statuses = summary.shown_statuses(total)
    groups = shared_properties.shared_lines(log)[:MOST_GROUPS]
    handle = summary.failing_handles(log)
    notes = [printable(note) for note in _notes(log)]
    closing = summary.closing_sentence(log)
    values = {
        "closing": printable(closing),
        "style": closing_style(closing),
        "tested": [(name, printable(value)) for name, value in heading.tested_facts(log.header)],
        "digests": [(name, printable(value)) for name, value in heading.run_facts(log.header)],
        "counts": [
            {"name": str(status), "style": status.css_class, "count": f"{count:,}"}
            for status, count in sorted(counts.items(), key=lambda item: not item[0].fails_run)
            if count
        ],
        "notes": notes,
        "notes_open": len(notes) <= MOST_OPEN_NOTES,
        "groups": [
            {
                "headline": printable(line.sentence),
                "command": printable(line.command),
                "count": f"{len(line.shared.failures):,}",
                "simplest": handle[line.shared.simplest.case],
            }
            for line in groups
        ],
        "headings": _headings(statuses, total),
        "rows": [_row(row, statuses, total) for row in sorted(rows, key=_failing_first)],
        "fine": sum(not _failures_of(row) for row in rows),
        "cases": f"{len(log.verdicts):,}",
        "failures": [
            _failure(log, shown.verdict)
            for shown in shared_properties.shown_failures(log, MOST_STATIC)
        ],
    }
    title = f"dmlconf: {values['closing']}"
    data = _data(log, counts, [line.shared.failures for line in groups])
    return page_parts("report.html", title, values, data, "copy.js", "report.js")


def _failures_of(totals: OperatorTotals) -> int:
    return sum(count for status, count in totals.counts.items() if status.fails_run)


def _failing_first(totals: OperatorTotals) -> tuple[int, str]:
    return -_failures_of(totals), totals.operator


def _headings(statuses: Sequence[Status], total: OperatorTotals) -> list[dict[str, str]]:
    """Return the headings of columns; narrow windows hide `minor` and `least` ones."""
    return [
        {"name": "Cases", "style": "minor"},
        *({"name": str(s).capitalize(), "style": _column_style(s, total)} for s in statuses),
        {"name": "Limit used", "style": "minor least"},
        {"name": "Seconds", "style": "minor least"},
    ]


def _column_style(status: Status, total: OperatorTotals) -> str:
    shown = total.counts.get(status, 0) and (status.fails_run or status is Status.PASSED)
    return "" if shown else "minor"


def _notes(log: RunLog) -> Iterator[str]:
    for section in remarks.SECTIONS:
        if section.prefix is not None:
            yield from (section.prefix + line for line in section.lines(log))
    yield from remarks.hardly_judged_lines(log)
    notes = remarks.plain_notes(log)
    yield from (note for note in notes if note)


def _row(
    totals: OperatorTotals, statuses: Sequence[Status], total: OperatorTotals
) -> dict[str, Any]:
    counts = {status: totals.counts.get(status, 0) for status in Status}
    margin = totals.margin
    cells = [{"value": totals.cases, "text": f"{totals.cases:,}", "style": "minor"}]
    for status in statuses:
        count = counts[status]
        style = f"{_column_style(status, total)} {status.css_class if count else 'soft'}".strip()
        cells.append({"value": count, "text": f"{count:,}", "style": style})
    cells += [
        {
            "value": -1 if margin is None else margin,
            "text": summary.margin_cell(margin),
            "style": "minor least",
        },
        {"value": totals.seconds, "text": f"{totals.seconds:.2f}", "style": "minor least"},
    ]
    return {
        "name": printable(totals.operator),
        "fails": _failures_of(totals) > 0,
        "bar": _bar(counts),
        "spoken": ", ".join(f"{count} {status}" for status, count in counts.items() if count),
        "cells": cells,
    }


def _bar(counts: Mapping[Status, int]) -> list[dict[str, str]]:
    """Return the parts of an operator's bar by status; statuses that fail the run come first."""
    present = sorted(
        (item for item in counts.items() if item[1]),
        key=lambda item: (not item[0].fails_run, item[0] is not Status.PASSED),
    )
    total = sum(count for _, count in present)
    free = _BAR - _NARROWEST * len(present)
    parts, x = [], 0.0
    for status, count in present:
        width = _NARROWEST + free * count / total
        parts.append({"status": status.css_class, "x": f"{x:.2f}", "width": f"{width:.2f}"})
        x += width
    return parts


def _failure(log: RunLog, verdict: Verdict) -> dict[str, str]:
    return {
        "case": printable(verdict.case),
        "status": str(verdict.status),
        "message": printable(verdict.reason.message if verdict.reason else ""),
        "command": printable(summary.repeat_command(log.header, verdict)),
    }


def _data(
    log: RunLog, counts: Mapping[Status, int], groups: Sequence[Sequence[Verdict]]
) -> Iterator[str]:
    """Yield the data of the page's script as JSON."""
    of_groups = {verdict.case for group in groups for verdict in group}
    statuses = list(Status)
    at: dict[str, int] = {}
    names: set[str] = set()
    every_tag: set[str] = set()
    every_type: set[str] = set()
    every_level: set[str] = set()
    for index, verdict in enumerate(log.verdicts):
        if verdict.case in of_groups:
            at[verdict.case] = index
        names.add(verdict.operator)
        every_tag.update(verdict.tags)
        every_type.update(_types(verdict))
        if verdict.identity.feature_level:
            every_level.add(verdict.identity.feature_level)
    operators, tags, types = sorted(names), sorted(every_tag), sorted(every_type)
    levels = sorted(every_level, key=lambda level: tuple(map(int, level.split("_"))))
    facets = (operators, tags, types, levels)
    indices = [{value: i for i, value in enumerate(values)} for values in facets]
    head = {
        "statuses": list(map(str, statuses)),
        "fails": [status.fails_run for status in statuses],
        "counts": [counts.get(status, 0) for status in statuses],
        "failing": bool(failing(log.verdicts)),
        "operators": list(map(printable, operators)),
        "tags": list(map(printable, tags)),
        "types": types,
        "levels": list(map(printable, levels)),
        "groups": [[at[verdict.case] for verdict in group] for group in groups],
        "command": printable(shlex.join(summary.run_command(log.header))),
        "paths": printable(shlex.join(log.header.paths)),
    }
    yield compact_json(head).removesuffix("}") + ',"cases":['
    handles = handles_in_order(cases(log.verdicts))
    both = zip(handles, log.verdicts, strict=True)
    separator = ""
    while several := list(islice(both, _TOGETHER)):
        shown = [{"h": handle, **_case(verdict, statuses, *indices)} for handle, verdict in several]
        yield separator + compact_json(shown)[1:-1]
        separator = ","
    yield "]}"


_DATA_TYPE: Final = re.compile(r"U?INT\d+|FLOAT\d+")


def _types(verdict: Verdict) -> set[str]:
    """Return the data types with which facts of the case begin."""
    names: set[str] = set()
    for value in verdict.facts.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and (match := _DATA_TYPE.match(text)):
                names.add(match[0])
    return names


def _case(
    verdict: Verdict,
    statuses: Sequence[Status],
    operators: Mapping[str, int],
    tags: Mapping[str, int],
    types: Mapping[str, int],
    levels: Mapping[str, int],
) -> dict[str, Any]:
    """Return what the script needs of a case, under names of one letter.

    `i` is the identifier, `m` milliseconds, `a` the location, `e` the provenance, `u` the
    circumstance that failed. Indices into the lists of `_data` are the status `s`, the operator
    `o`, the tags `t`, the data types `d` and the feature level `l`. Without a value, `e`, `u`, `d`
    and `l` are left out. Only cases with a reason have the reason `r` and the differing elements
    `x`. Only cases that did not pass have the outputs' figures `g` and the facts `f`.
    """
    case: dict[str, Any] = {
        "i": printable(verdict.case),
        "s": statuses.index(verdict.status),
        "o": operators[verdict.operator],
        "t": [tags[tag] for tag in verdict.tags],
        "m": round(verdict.seconds * 1000, 3),
        "a": printable(verdict.location),
    }
    if verdict.expectation is not None:
        case["e"] = str(verdict.expectation)
    if data_types := sorted({types[name] for name in _types(verdict)}):
        case["d"] = data_types
    if verdict.circumstance is not None:
        case["u"] = printable(verdict.circumstance)
    if verdict.identity.feature_level is not None:
        case["l"] = levels[verdict.identity.feature_level]
    if verdict.reason is not None:
        case["r"] = _reason(verdict.reason)
        case["x"] = _differences(verdict)
    if verdict.status is not Status.PASSED:
        case["g"] = [_output(name, figures) for name, figures in verdict.figures.items()]
        case["f"] = {printable(name): _shown(value) for name, value in verdict.facts.items()}
    return case


def _shown(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value))


def _reason(reason: Reason) -> dict[str, str]:
    return {
        "kind": str(reason.kind),
        "message": printable(reason.message),
        "diagnostics": "\n".join(map(printable, summary.diagnostic_lines(reason))),
    }


def _differences(verdict: Verdict) -> list[dict[str, list[str]]]:
    differences = verdict.reason.differences if verdict.reason is not None else ()
    columns = difference_columns(differences)
    rows = (difference_cells(verdict, difference) for difference in differences)
    return [{"keys": columns, "values": [printable(row[name]) for name in columns]} for row in rows]


def _output(name: str, figures: Figures) -> dict[str, Any]:
    output: dict[str, Any] = {"name": printable(name), "facts": list(_facts(figures))}
    if figures.error_map:
        output["map"] = asdict(figures.error_map)
    if figures.histogram:
        output["histogram"] = figures.histogram
    if figures.rule == "ulp" and math.isfinite(figures.limit):
        output["ulp"] = figures.limit
    return output


def _facts(figures: Figures) -> Iterator[tuple[str, str]]:
    yield "elements", f"{figures.elements:,}"
    yield "outside the rule", f"{figures.differing:,}"
    yield "rule", f"{figures.rule}, limit {figures.limit:g}"
    margin = figures.margin
    if margin is not None:
        finite = math.isfinite(margin) and margin < 100
        yield "limit used", f"{margin:.1%}" if finite else "more than 100 times"
    if figures.source:
        yield "source", printable(figures.source)
