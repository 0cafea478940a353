"""Reports count the cases that say that the reference is wrong.

The tested code is in `dmlconf/reports/runs/remarks.py`, `dmlconf/reports/runs/junit.py` and
`dmlconf/reports/runs/json_report.py`.
"""

from __future__ import annotations

import json

from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.runs import html, json_report, junit, markdown, picture
from tests.reports import logs

DISPUTING = logs.PASSED.of_case(disputes="reference")
WITH_TWO_DISPUTES = logs.run_log(DISPUTING, DISPUTING.of_case(case="gather/other"), logs.FAILED)


def test_text_markdown_html_junit_and_json_count_disputes() -> None:
    note = f"2 cases dispute the reference, such as {logs.PASSED.case}"
    for report in (
        picture.render_text(WITH_TWO_DISPUTES),
        markdown.render(WITH_TWO_DISPUTES),
        html.render(WITH_TWO_DISPUTES),
    ):
        assert note in " ".join(report.split())
    assert '<property name="disputed" value="2"/>' in junit.render(WITH_TWO_DISPUTES)
    data = json.loads(json_report.render(WITH_TWO_DISPUTES))
    assert [verdict.get("disputes") for verdict in data["verdicts"]].count("reference") == 2
    validator(bundled_schema("report")).validate(data)


def test_reports_without_disputes_say_nothing_of_them() -> None:
    log = logs.run_log(logs.PASSED)
    for module in (html, json_report, junit, markdown):
        assert "dispute" not in module.render(log), module.__name__
    assert "dispute" not in picture.render_text(log)
