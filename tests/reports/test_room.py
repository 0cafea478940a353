"""Reports count open and loose elements, and blocks in which no element is loose.

The tested code is in `dmlconf/reports/runs/remarks.py`, `dmlconf/reports/runs/json_report.py` and
`dmlconf/reports/runs/junit.py`.
"""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from dmlconf.reports.runs import html, json_report, junit, markdown, picture
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Reason, ReasonKind, Status, Verdict
from tests.reports import logs


def with_room(verdict: Verdict, is_open: int, loose: int) -> Verdict:
    """Return the verdict with 12 elements, of which `is_open` are open and `loose` are loose."""
    plain = logs.figures(1.0)["OutputTensor"]
    figures = replace(plain, margin=0.5, source="its page", open=is_open, loose=loose)
    return verdict.judged(figures={"OutputTensor": figures})


def log() -> RunLog:
    """Return a log of 48 elements, of which 2 + 12 are open and 3 + 1 + 12 are loose."""
    reason = Reason(ReasonKind.ANY_VALUE_PERMITTED, "any value is right")
    return logs.run_log(
        with_room(logs.PASSED, 2, 3),
        with_room(logs.PASSED_NEAR, 0, 1),
        with_room(logs.UNCHECKED, 12, 12).judged(status=Status.UNCHECKED, reason=reason),
        logs.PASSED_INTEGERS,
    )


def test_text_and_markdown_count_open_and_loose_elements() -> None:
    for message in (picture.render_text(log()), markdown.render(log())):
        words = " ".join(message.replace("\\", "").split())
        assert "14 of 48 elements are open: the rule permits any value" in words
        assert "16 of 48 elements are loose" in words
        assert "or its rule permits any value" in words


def test_reports_omit_open_and_loose_elements_if_none() -> None:
    judged = logs.run_log(with_room(logs.PASSED, 0, 0))
    for message in (picture.render_text(judged), markdown.render(judged)):
        assert "open" not in message
        assert "loose" not in message


def test_json_has_the_numbers_of_open_and_loose_elements() -> None:
    assert json_report.report_data(log())["room"] == {"elements": 48, "open": 14, "loose": 16}


def test_junit_counts_open_elements_of_operators() -> None:
    root = ElementTree.fromstring(junit.render(log()))
    suite = root.find("testsuite[@name='GATHER']")
    assert suite is not None
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert (properties["open"], properties["elements"]) == ("2", "24")  # Of two cases.


def test_reports_count_blocks_without_loose_elements() -> None:
    def block(number: int, loose: int) -> Verdict:
        named = logs.PASSED.of_case(case=f"blocks/my-app/{number}", tags=("block",))
        return with_room(named, 0, loose)

    blocks = logs.run_log(logs.PASSED, *(block(n, loose) for n, loose in enumerate((0, 3, 12))))
    for message in (
        picture.render_text(blocks),
        markdown.render(blocks),
        html.render(blocks),
    ):
        words = " ".join(message.replace("\\", "").split())
        assert "1 of 3 blocks would fail if any element were off by more than a tenth" in words
        first, second = "blocks/my-app/2: 12 of 12 elements", "blocks/my-app/1: 3 of 12 elements"
        assert words.index(first) < words.index(second)


def test_section_of_blocks_needs_blocks_with_counted_elements() -> None:
    uncounted = replace(logs.figures(1.0)["OutputTensor"], loose=None)
    older = logs.PASSED.of_case(tags=("block",)).judged(figures={"OutputTensor": uncounted})
    for without in (log(), logs.run_log(older)):
        assert "What blocks" not in picture.render_text(without)
    counted = older.judged(figures={"OutputTensor": replace(uncounted, loose=0)})
    assert "What blocks" in picture.render_text(logs.run_log(counted))
