"""JUnit XML, as CI servers read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final
from xml.etree import ElementTree

from dmlconf.reports import remarks, summary
from dmlconf.reports.shared import SharedLine, shared_lines
from dmlconf.runner.log import Header, RunLog
from dmlconf.runner.verdict import Reason, Status, Verdict

__all__ = ["render"]

# Every character that XML 1.0 does not allow.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ELEMENTS: Final = {
    Status.FAILED: "failure",
    Status.STALE: "failure",
    Status.BROKEN: "error",
    Status.UNSUPPORTED: "skipped",
    Status.UNCHECKED: "skipped",
    Status.WAIVED: "skipped",
    Status.NOT_RUN: "skipped",
}


def render(log: RunLog) -> str:
    """Return the run as JUnit XML: a suite for each operator, with what did not pass explained.

    Only cases that passed are shown as such; unchecked ones are `skipped`, with the reason. A log
    without its end has one more case, an error, so that no CI server takes it for a full run.
    """
    root = ElementTree.Element("testsuites", name="dmlconf")
    by_operator: dict[str, list[Verdict]] = {}
    for verdict in log.verdicts:
        by_operator.setdefault(verdict.operator, []).append(verdict)
    lines = shared_lines(log)
    for name in sorted(by_operator):
        own = [line for line in lines if name in line.shared.operators]
        root.append(_suite(log.header, name, by_operator[name], own))
    unreached = _unreached(log)
    if unreached is not None:
        root.append(unreached)
    _count(root, log.verdicts, more_errors=unreached is not None)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("", text)


def _count(
    element: ElementTree.Element, verdicts: Sequence[Verdict], *, more_errors: int = 0
) -> None:
    kinds = [_ELEMENTS.get(verdict.status) for verdict in verdicts]
    element.set("tests", str(len(verdicts) + more_errors))
    element.set("failures", str(kinds.count("failure")))
    element.set("errors", str(kinds.count("error") + more_errors))
    element.set("skipped", str(kinds.count("skipped")))
    element.set("time", f"{sum(verdict.seconds for verdict in verdicts):.6f}")


def _suite(
    header: Header, name: str, verdicts: Sequence[Verdict], shared: Sequence[SharedLine]
) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_clean(name), timestamp=header.started)
    _count(suite, verdicts)
    properties = ElementTree.SubElement(suite, "properties")
    digests = {"suite": header.suite_digest, "catalogue": header.catalogue_digest}
    rooms = {key: str(value) for key, value in asdict(remarks.room_totals(verdicts)).items()}
    for key, value in (dict(summary.environment_facts(header)) | digests | rooms).items():
        ElementTree.SubElement(properties, "property", name=key, value=_clean(value))
    for line in shared:
        value = _clean(f"{line.sentence}\n{line.command}")
        ElementTree.SubElement(properties, "property", name="shared by failures", value=value)
    for verdict in verdicts:
        suite.append(_case(header, verdict))
    return suite


def _case(header: Header, verdict: Verdict) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=_clean(f"dmlconf.{verdict.operator}"),
        name=_clean(verdict.case),
        time=f"{verdict.seconds:.6f}",
    )
    if verdict.location:
        case.set("file", _clean(verdict.location.rpartition(":")[0]))
    element = _ELEMENTS.get(verdict.status)
    if element is not None:
        reason = verdict.reason
        message = f"{verdict.status}: {reason.kind}: {reason.message}" if reason else verdict.status
        told = ElementTree.SubElement(case, element, message=_clean(message))
        if element != "skipped":
            told.set("type", reason.kind if reason else verdict.status)
            told.text = _clean(_explained(header, verdict, reason))
    rules = summary.rule_lines(verdict)
    if rules:
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(rules))
    return case


def _unreached(log: RunLog) -> ElementTree.Element | None:
    """Return a suite that tells of the cases that a dead run never reached, if there are any."""
    missing = log.header.selected - len(log.verdicts)
    if log.footer is not None and missing <= 0:
        return None
    suite = ElementTree.Element("testsuite", name="not reached", timestamp=log.header.started)
    _count(suite, (), more_errors=1)
    case = ElementTree.SubElement(
        suite, "testcase", classname="dmlconf", name="the run ended early", time="0.000000"
    )
    told = f"{max(missing, 0)} of {log.header.selected} selected cases have no verdict"
    ElementTree.SubElement(case, "error", message=told, type=Status.NOT_RUN)
    return suite


def _explained(header: Header, verdict: Verdict, reason: Reason | None) -> str:
    lines = _particulars(reason) if reason else []
    lines += [f"at {verdict.location}", summary.repeat_command(header, verdict)]
    return "\n".join(lines)


def _particulars(reason: Reason) -> list[str]:
    lines = [reason.message]
    lines += [
        f"{d['tensor']}{d['coordinates']}: expected {d['expected']}, actual {d['actual']}"
        for d in reason.differences
    ]
    if reason.diagnostics:
        lines += ["", reason.diagnostics]
    return [*lines, ""]
