"""The report on a run as JUnit XML, as CI servers read it.

To keep the file small, only failures have rules and facts.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final
from xml.etree import ElementTree

from dmlconf.documents.problems import printable
from dmlconf.reports.runs import remarks, summary
from dmlconf.reports.runs.failure_details import (
    Sources,
    difference_cells,
    difference_columns,
    rule_lines,
)
from dmlconf.reports.runs.location import file_and_line
from dmlconf.reports.runs.shared_properties import SharedLine, shared_lines
from dmlconf.run_log.log import Header, RunLog
from dmlconf.verdicts.choosing import where
from dmlconf.verdicts.grouping import verdicts_by_operator
from dmlconf.verdicts.verdict import Identity, Reason, Status, Verdict

__all__ = ["MOST_SINGLE_CASES", "render"]

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""

_LAYOUT: Final = frozenset("\t\n\r")
"""Unprintable characters that are not escaped."""

_UNREACHED: Final = str(Status.NOT_RUN.traits.junit_of_run)
"""The element for the cases that a run never reached."""

MOST_SINGLE_CASES: Final = 10_000
"""In larger runs, a `testcase` may stand for several cases of a matrix that do not fail."""


def render(log: RunLog) -> str:
    """Return the run as JUnit XML: a `testsuite` for each operator, a `testcase` for each case.

    In a run of more than `MOST_SINGLE_CASES`, one `testcase` may stand for several cases.

    The `time` of a suite is the sum of the times of its cases. The `time` of the root is the
    duration in the log's footer or, without a footer, the sum for all cases. If the log ends early
    or selected cases have no verdict, one more `testcase` is an error.
    """
    root = ElementTree.Element("testsuites", name="dmlconf")
    together = len(log.verdicts) > MOST_SINGLE_CASES
    by_operator = sorted(verdicts_by_operator(log.verdicts).items())
    entries = [
        _several(verdicts) if together else [_Entry(each) for each in verdicts]
        for _, verdicts in by_operator
    ]
    lines = shared_lines(log)
    for (operator, verdicts), suite in zip(by_operator, entries, strict=True):
        own = [line for line in lines if operator in line.shared.operators]
        root.append(_suite(log.header, operator, verdicts, suite, own))
    unreached = _unreached(log)
    if unreached is not None:
        root.append(unreached)
    every = [entry for suite in entries for entry in suite]
    _count(root, every, _UNREACHED if unreached is not None else None)
    if log.footer is not None:
        root.set("time", f"{log.footer.seconds:.3f}")
    ElementTree.indent(root, space="")
    # `>` is escaped in texts and attributes, so ` />` is always the end of a tag.
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


class _Entry:
    """The content of a `testcase`: a case, or several cases of one matrix with the same result.

    Attributes:
        first: the verdict on the first of the cases.
    """

    def __init__(self, first: Verdict) -> None:
        self.first = first
        self._each = array("d", [first.seconds])

    def add(self, verdict: Verdict) -> None:
        self._each.append(verdict.seconds)

    @property
    def cases(self) -> int:
        return len(self._each)

    @property
    def name(self) -> str:
        if self.cases == 1:
            return self.first.case
        return f"{self.first.case.partition('[')[0]} ({self.cases:,} cases)"

    @property
    def element(self) -> str | None:
        return self.first.status.traits.junit

    @property
    def seconds(self) -> float:
        return sum(self._each)


def _several(verdicts: Iterable[Verdict]) -> list[_Entry]:
    """Group cases of the same matrix, status, reason and message.

    Each failure, and each case outside a matrix, is an entry of its own.
    """
    alike: dict[tuple[str, ...], _Entry] = {}
    for verdict in verdicts:
        matrix, bracket, _ = verdict.case.partition("[")
        single = verdict.status.fails_run or not bracket
        key = (verdict.case,) if single else (matrix, verdict.status, _message(verdict))
        entry = alike.get(key)
        if entry is None:
            alike[key] = _Entry(verdict)
        else:
            entry.add(verdict)
    return list(alike.values())


def _clean(text: str) -> str:
    """Return text without the characters that XML forbids.

    Other unprintable characters, except tabs and line ends, are escaped.
    """
    allowed = _FORBIDDEN.sub("", text)
    if allowed.isprintable():
        return allowed
    return "".join(c if c in _LAYOUT else printable(c) for c in allowed)


def _count(
    element: ElementTree.Element, entries: Sequence[_Entry], more: str | None = None
) -> None:
    """Set the numbers of tests and their time.

    Args:
        more: the kind of one further test, such as `error`.
    """
    kinds = [entry.element for entry in entries] + ([more] if more is not None else [])
    element.set("tests", str(len(kinds)))
    element.set("failures", str(kinds.count("failure")))
    element.set("errors", str(kinds.count("error")))
    element.set("skipped", str(kinds.count("skipped")))
    element.set("time", f"{sum(entry.seconds for entry in entries):.4f}")


def _suite(
    header: Header,
    name: str,
    verdicts: Sequence[Verdict],
    entries: Sequence[_Entry],
    shared: Sequence[SharedLine],
) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_clean(name), timestamp=header.started)
    _count(suite, entries)
    digests = {"suite": header.suite_digest, "catalogue": header.catalogue_digest}
    rooms = {key: str(value) for key, value in asdict(remarks.room_totals(verdicts)).items()}
    counts = {"cases": str(len(verdicts))}
    disputed = len(where(verdicts, Identity, lambda identity: identity.disputes is not None))
    if disputed:
        counts["disputed"] = str(disputed)
    properties = dict(summary.environment_facts(header)) | digests | counts | rooms
    for number, line in enumerate(shared, start=1):
        properties[f"shared by failures {number}"] = f"{line.sentence}: {line.command}"
        properties[f"simplest of failures {number}"] = line.shared.simplest.case
    _add_properties(suite, properties)
    sources = Sources()
    for entry in entries:
        suite.append(_case(header, entry, sources))
    return suite


def _add_properties(element: ElementTree.Element, properties: Mapping[str, str]) -> None:
    parent = ElementTree.SubElement(element, "properties")
    for name, value in properties.items():
        ElementTree.SubElement(parent, "property", name=_clean(name), value=_clean(value))


def _case(header: Header, entry: _Entry, sources: Sources) -> ElementTree.Element:
    verdict, kind = entry.first, entry.element
    case = ElementTree.Element(
        "testcase",
        classname=_clean(f"dmlconf.{verdict.operator}"),
        name=_clean(entry.name),
        time=f"{entry.seconds:.4f}",
    )
    if verdict.location:
        file, line = file_and_line(verdict.location)
        case.set("file", _clean(file))
        if line is not None:
            case.set("line", str(line))
    if kind is None:
        return case
    failing = kind != "skipped"
    if failing and verdict.facts:
        under = {"circumstance": verdict.circumstance} if verdict.circumstance else {}
        facts = {name: _fact(value) for name, value in verdict.facts.items()}
        _add_properties(case, under | facts)
    element = ElementTree.SubElement(case, kind, message=_clean(_message(verdict)))
    if failing:
        reason = verdict.reason
        element.set("type", reason.kind if reason else verdict.status)
        element.text = _clean(_explained(header, verdict, reason))
        rules = rule_lines(header, verdict, sources)
        if rules:
            ElementTree.SubElement(case, "system-out").text = _clean("\n".join(rules))
    return case


def _fact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _message(verdict: Verdict) -> str:
    reason = verdict.reason
    return f"{verdict.status}: {reason.kind}: {reason.message}" if reason else verdict.status


def _unreached(log: RunLog) -> ElementTree.Element | None:
    """Return a suite for cases without a verdict; None if the log has a footer and all verdicts."""
    missing = log.header.selected - len(log.verdicts)
    if log.footer is not None and missing <= 0:
        return None
    suite = ElementTree.Element("testsuite", name="not reached", timestamp=log.header.started)
    _count(suite, (), _UNREACHED)
    case = ElementTree.SubElement(
        suite, "testcase", classname="dmlconf", name="the run ended early", time="0.0000"
    )
    message = f"{max(missing, 0)} of {log.header.selected} selected cases have no verdict"
    ElementTree.SubElement(case, _UNREACHED, message=message, type=Status.NOT_RUN)
    return suite


def _explained(header: Header, verdict: Verdict, reason: Reason | None) -> str:
    lines = _particulars(verdict, reason) if reason else []
    lines += [f"at {verdict.location}", summary.repeat_command(header, verdict)]
    return "\n".join(lines)


def _particulars(verdict: Verdict, reason: Reason) -> list[str]:
    lines = [reason.message]
    names = difference_columns(reason.differences)[2:]
    for difference in reason.differences:
        cells = difference_cells(verdict, difference)
        types = ", ".join(f"{name} {cells[name]}" for name in names)
        lines.append(f"{cells['tensor']}{cells['at']}: {types}")
    if reason.diagnostics:
        lines += ["", reason.diagnostics]
    return [*lines, ""]
