"""Reports name operators with far larger errors than measured devices.

The tested code is in `dmlconf/reports/runs/remarks.py` and `dmlconf/reports/runs/json_report.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.runs import json_report, markdown, picture
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Verdict
from tests.reports import logs

HEADING = "Right by the documentation, and far from what devices give"


def verdict_with_error(
    case: str, operator: str, typical_margin: float, verdict: Verdict = logs.PASSED
) -> Verdict:
    """Return a verdict whose error is `typical_margin` times the usual one of measured devices."""
    plain = logs.figures(900.0)["OutputTensor"]
    figures = replace(plain, margin=0.05, typical=0.0001, typical_margin=typical_margin)
    return verdict.of_case(case=case, operator=operator).judged(figures={"OutputTensor": figures})


LOG = logs.run_log(
    verdict_with_error("cos/a", "COS", 11.0),
    verdict_with_error("sin/a", "SIN", 500.0),
    verdict_with_error("sin/b", "SIN", 1200.0),
    verdict_with_error("sin/c", "SIN", 2.0),
    # Only errors of more than 10 times the usual one are far.
    verdict_with_error("tan/a", "TAN", 10.0),
    # A failing case needs no such remark.
    verdict_with_error("log/a", "LOG", 99.0, logs.FAILED),
)


def test_reports_name_operators_far_from_devices_the_farthest_first() -> None:
    for message in (picture.render_text(LOG), markdown.render(LOG)):
        lines = message.partition(HEADING)[2].splitlines()
        assert [line.strip(" -") for line in lines if "usual error" in line] == [
            "1,200 times the usual error SIN, 2 cases: sin/b",
            "11 times the usual error COS, 1 case: cos/a",
        ]


def test_json_lists_operators_far_from_devices() -> None:
    actual = json.loads(json_report.render(LOG))
    assert actual["far_from_devices"] == [
        {"operator": "SIN", "cases": 2, "typical_margin": 1200.0, "case": "sin/b"},
        {"operator": "COS", "cases": 1, "typical_margin": 11.0, "case": "cos/a"},
    ]
    validator(bundled_schema("report")).validate(actual)


@pytest.mark.parametrize(
    "log", [logs.everything(), logs.run_log(verdict_with_error("tan/a", "TAN", 10.0))]
)
def test_reports_of_runs_near_to_devices_lack_the_heading(log: RunLog) -> None:
    assert HEADING not in picture.render_text(log)
    assert HEADING not in markdown.render(log)
