"""Reports say under which rule a case failed, and how much of its limit a passing case uses.

The tested code is in `dmlconf/reports/runs/failure_details.py`, `dmlconf/reports/runs/summary.py`,
`dmlconf/reports/runs/terminal.py`, `dmlconf/reports/runs/markdown.py`,
`dmlconf/reports/runs/remarks.py` and `dmlconf/reports/runs/junit.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dmlconf.reports.runs import junit, markdown, picture
from dmlconf.verdicts.verdict import Verdict
from tests.reports import logs


def with_margin(verdict: Verdict, margin: float, **more: Any) -> Verdict:
    """Return the verdict with one output, whose margin is the share of its limit that it uses."""
    plain = logs.figures(1.0)["OutputTensor"]
    figures = replace(plain, margin=margin, source="its page", **more)
    return verdict.judged(figures={"OutputTensor": figures})


def test_junit_names_only_rules_of_failures() -> None:
    passed, failed = with_margin(logs.PASSED, 0.5), with_margin(logs.FAILED, 1.5)
    actual = junit.render(logs.run_log(failed, passed))
    assert "OutputTensor: rule: at most 1 ULP (its page)</system-out>" in actual
    assert actual.count("<system-out>") == 1


def test_text_markdown_and_junit_name_rules_of_failures() -> None:
    failed = with_margin(logs.FAILED, math.inf, rule="accumulate", limit=2, products=16)
    log = logs.run_log(failed)
    for message in (picture.render_text(log), markdown.render(log), junit.render(log)):
        assert "accumulate, sum of 16 products, limit 2" in message
        assert "its page" in message


def test_failure_under_rule_exact_shows_no_used_limit() -> None:
    failed = with_margin(logs.FAILED, math.inf, rule="exact", limit=0)
    actual = picture.render_text(logs.run_log(failed))
    assert "OutputTensor: rule: exact (its page)" in actual
    assert "of the limit used" not in actual
    near = with_margin(logs.FAILED, 0.5, rule="accumulate", limit=2)
    assert "50.0% of the limit used" in picture.render_text(logs.run_log(near))


def test_failure_under_rule_one_of_shows_no_percentage() -> None:
    failed = with_margin(logs.FAILED, math.inf, rule="one of", limit=0)
    actual = picture.render_text(logs.run_log(failed))
    assert "OutputTensor: rule: one of several candidates (its page)" in actual
    assert "inf%" not in actual


def test_five_operators_nearest_to_their_limit_are_named() -> None:
    verdicts = [
        with_margin(logs.verdict(f"op{n}/case", operator=f"OP{n}"), n / 10) for n in range(8)
    ]
    verdicts.append(with_margin(logs.FAILED, 9.0))  # Not a passing case.
    log = logs.run_log(*verdicts)
    for message in (picture.render_text(log), markdown.render(log)):
        nearest = message.partition("Nearest to their limit")[2].splitlines()
        named = [line.strip(" -") for line in nearest if "% OP" in line]
        assert named == [f"{n}0.0% OP{n}: op{n}/case" for n in (7, 6, 5, 4, 3)]


def test_reports_without_margins_show_no_rule() -> None:
    log = logs.everything()
    for message in (picture.render_text(log), markdown.render(log), junit.render(log)):
        assert "rule: " not in message
        assert "Nearest to their limit" not in message
