"""Reports name the simplest of several failures, usually that with the fewest elements, first.

The tested code is in `dmlconf/verdicts/simplest.py`, and in `github.py`, `html.py`,
`json_report.py`, `junit.py`, `markdown.py` and `terminal.py` in `dmlconf/reports/runs/`.
"""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from dmlconf.reports.runs import github, html, json_report, junit, markdown, terminal
from dmlconf.reports.runs.summary import failing_handles
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.simplest import simplest, simplest_first
from dmlconf.verdicts.verdict import Verdict
from tests.reports import logs

SIMPLEST = "gather/matrix[Axis=1]"


def failed(case: str, tensors: list[str], **changes: Any) -> Verdict:
    facts = {"Tensors": tensors} if tensors else {}
    return logs.FAILED.of_case(case=case, facts=facts, **changes)


LARGE = failed("gather/a", ["FLOAT32 4x4", "FLOAT32 4x4"])  # 32 elements.
SHORT = failed(SIMPLEST, ["FLOAT32 1x1", "FLOAT32 2x4"])  # 1 + 8 elements.
LONG = failed("gather/matrix/longer[Axis=1]", ["FLOAT32 3x3"])  # 9, and a longer identifier.
INVALID = failed("gather/i", ["FLOAT32 1"], tags=("invalid",))
UNKNOWN_SIZES = failed("gather/u", [])
ALL = (LARGE, UNKNOWN_SIZES, LONG, INVALID, SHORT)


def run() -> RunLog:
    return logs.run_log(*ALL, logs.PASSED)


def test_simplest_has_fewest_elements_then_shortest_identifier() -> None:
    assert simplest(ALL) is SHORT
    assert simplest([LARGE, LONG]) is LONG
    assert simplest([LONG, SHORT]) is SHORT
    assert simplest([INVALID]) is INVALID


def test_invalid_cases_and_unknown_sizes_come_last() -> None:
    assert simplest([INVALID, LARGE]) is LARGE
    assert simplest([UNKNOWN_SIZES, LARGE]) is LARGE


def test_combinations_come_between_small_and_large_cases() -> None:
    paired = failed("gather/c", ["FLOAT32 1"], tags=("combinations",))
    assert simplest([paired, LARGE]) is LARGE
    huge = failed("gather/h", ["FLOAT32 32x32"])
    assert simplest([paired, huge]) is paired


def test_simplest_failure_comes_first_and_others_keep_order() -> None:
    assert simplest_first(ALL) == [SHORT, LARGE, UNKNOWN_SIZES, LONG, INVALID]
    assert simplest_first([]) == []


@pytest.mark.parametrize("failures", [1, 3])
def test_terminal_shows_the_simplest_failure_first(
    failures: int,
) -> None:
    console = Console(width=200, file=StringIO())
    with console.capture() as capture:
        console.print(terminal.render(run(), failures=failures))
    text = capture.get()
    handle = failing_handles(run())[SIMPLEST]
    assert text[text.index("FAILED gather/") :].startswith(f"FAILED {SIMPLEST}: ")
    assert f"see one case    dmlconf show {handle} " in text


def test_other_reports_name_the_simplest_failure() -> None:
    log = run()
    handle = failing_handles(log)[SIMPLEST]
    assert f"dmlconf show {handle} " in markdown.render(log)
    assert f'href="#group=1&amp;case={handle}"' in html.render(log)
    groups = json.loads(json_report.render(log))["shared_properties"]
    assert [group["simplest"] for group in groups] == [SIMPLEST]
    suites = ElementTree.fromstring(junit.render(log))
    properties = {each.get("name"): each.get("value") for each in suites.iter("property")}
    assert properties["simplest of failures 1"] == SIMPLEST
    assert f"title=failed%3A {SIMPLEST.replace(',', '%2C')}" in github.render(log).splitlines()[1]
