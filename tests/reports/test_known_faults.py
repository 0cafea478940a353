"""Reports on a run name known faults of DirectML, which fail no run.

The tested code is in `dmlconf/reports/runs/remarks.py`, `dmlconf/reports/runs/summary.py`,
`dmlconf/reports/runs/terminal.py`, `dmlconf/reports/runs/markdown.py`,
`dmlconf/reports/runs/html.py`, `dmlconf/reports/runs/junit.py` and
`dmlconf/reports/runs/json_report.py`.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree

from dmlconf.excuses.known_fault_file import read_known_faults
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.reports.runs import html, json_report, junit, markdown, remarks, summary
from dmlconf.verdicts.verdict import Reason, ReasonKind
from tests.reports import logs

LOG = logs.run_log(logs.PASSED, logs.KNOWN_FAULT, logs.KNOWN_FAULT)
LINE = "2 low-words, in DirectML 1.15.4"
"""A known fault that the list of known faults lacks."""

LISTED: Final = "int64-low-words-compared-as-signed"
"""A known fault of the list `schemas/known-faults.yaml`."""


def test_known_fault_is_named_with_its_number_of_cases() -> None:
    assert remarks.known_fault_lines(LOG) == [LINE]
    assert remarks.known_fault_lines(logs.run_log(logs.WAIVED)) == []


def test_listed_fault_is_explained_with_its_smallest_case() -> None:
    reason = Reason(ReasonKind.KNOWN_FAULT, f"{LISTED}, in DirectML 1.15.4: It compares.")
    sizes = {"large": "INT64 9", "small": "INT64 2", "middle": "INT64 5"}
    verdicts = [
        logs.KNOWN_FAULT.of_case(case=case, facts={"InputTensor": text}).judged(reason=reason)
        for case, text in sizes.items()
    ]
    [fault] = [each for each in read_known_faults() if each.name == LISTED]
    assert fault.title
    assert fault.instead
    listed, unlisted = remarks.known_fault_lines(logs.run_log(logs.KNOWN_FAULT, *verdicts))
    assert listed == (
        f"3 {LISTED}, in DirectML 1.15.4: {fault.title} ({fault.releases}). "
        f"Smallest case: small. {fault.instead}"
    )
    assert unlisted == "1 low-words, in DirectML 1.15.4"


def test_text_and_markdown_have_a_section_of_known_faults() -> None:
    text = RUN_FORMATS["text"].text(LOG)
    assert f"Waived for known faults of DirectML\n  {LINE}\n" in text
    assert "Waived for known faults" not in RUN_FORMATS["text"].text(logs.plain())
    assert f"Waived for known faults of DirectML:\n\n- {LINE}\n" in markdown.render(LOG).replace(
        "\\", ""
    )
    assert "Waived for known faults" not in markdown.render(logs.plain())


def test_the_html_page_counts_known_faults_and_waived_failures() -> None:
    reason = Reason(ReasonKind.WAIVER, "WAIVER-7: the driver team knows")
    log = logs.run_log(logs.KNOWN_FAULT, logs.WAIVED.judged(reason=reason))
    page = html.render(log)
    assert "waived for a known fault: 1 low-words, in DirectML 1.15.4" in page
    assert "waived by a waiver: 1 WAIVER-7" in page
    assert remarks.waiver_lines(log) == ["1 WAIVER-7"]


def test_run_passes_and_counts_known_faults_as_waived() -> None:
    assert summary.closing_sentence(LOG) == "PASSED: 1 passed, 2 waived of 3 cases"


def test_junit_skips_known_faults_with_the_reason() -> None:
    root = ElementTree.fromstring(junit.render(LOG))
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "2")
    [first, _] = root.iter("skipped")
    assert "known fault of DirectML" in str(first.get("message"))


def test_json_has_a_known_fault_as_reason() -> None:
    reason = json_report.report_data(LOG)["verdicts"][1]["reason"]
    assert reason["kind"] == "known fault of DirectML"
