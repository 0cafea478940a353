"""The report `junit` shows statuses, counts and times as CI systems read them.

The tested code is in `dmlconf/reports/runs/junit.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dmlconf.reports.runs import junit
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.verdict import Verdict
from tests.reports import logs

NOT_PASSED = {"failure", "error", "skipped"}
"""CI systems take a `testcase` without one of these elements for passed."""


def junit_xml(log: RunLog) -> ElementTree.Element:
    return ElementTree.fromstring(junit.render(log))


def outcome_tag(verdict: Verdict) -> str:
    """Return the element with which the report shows a case's outcome, or `passed` without one."""
    case = junit_xml(logs.run_log(verdict)).find("testsuite/testcase")
    assert case is not None
    return next((child.tag for child in case if child.tag in NOT_PASSED), "passed")


@pytest.mark.parametrize("with_reason", [True, False])
@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (logs.PASSED, "passed"),
        (logs.FAILED, "failure"),
        (logs.STALE, "failure"),
        (logs.BROKEN, "error"),
        (logs.UNSUPPORTED, "skipped"),
        (logs.UNCHECKED, "skipped"),
        (logs.WAIVED, "skipped"),
        (logs.NOT_RUN, "skipped"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.status),
)
def test_only_passed_cases_are_shown_as_passed(
    verdict: Verdict, expected: str, with_reason: bool
) -> None:
    assert outcome_tag(verdict if with_reason else verdict.judged(reason=None)) == expected


def test_message_of_an_unchecked_case_says_so() -> None:
    skipped = junit_xml(logs.run_log(logs.UNCHECKED)).find(".//skipped")
    assert skipped is not None
    assert skipped.get("message", "").startswith("unchecked: no independent expectation: ")


@pytest.mark.parametrize(
    "log",
    [logs.everything(), logs.plain(), logs.dead(logs.everything(), 20)],
    ids=["everything", "plain", "dead"],
)
def test_suites_have_counts_and_time_of_their_cases(log: RunLog) -> None:
    root = junit_xml(log)
    for element in (root, *root.iter("testsuite")):
        tags = Counter(child.tag for child in element.iter())
        assert element.get("tests") == str(tags["testcase"])
        assert element.get("failures") == str(tags["failure"])
        assert element.get("errors") == str(tags["error"])
        assert element.get("skipped") == str(tags["skipped"])
    for suite in root.iter("testsuite"):
        seconds = [float(case.get("time", "")) for case in suite.iter("testcase")]
        assert float(suite.get("time", "")) == pytest.approx(sum(seconds))


def test_the_element_of_a_passing_case_is_empty() -> None:
    report = junit.render(logs.run_log(logs.PASSED)).splitlines()
    line = next(line for line in report if line.startswith("<testcase"))
    assert line.endswith('"/>')


def test_the_time_of_the_root_is_that_of_the_run() -> None:
    assert junit_xml(logs.everything()).get("time") == "62.500"


@pytest.mark.slow
def test_passing_cases_of_a_matrix_share_an_element() -> None:
    verdicts = [
        logs.verdict(f"gather/matrix-{matrix}[DataType=FLOAT16,DimensionCount=5,Axis={axis}]")
        for matrix in range(400)
        for axis in range(30)
    ]
    other = logs.FAILED.of_case(case=f"{verdicts[0].case[:-1]},Axis=99]")
    text = junit.render(logs.run_log(*verdicts, other))
    assert len(text) < 100_000
    suite = ElementTree.fromstring(text).find("testsuite")
    assert suite is not None
    names = [case.get("name") for case in suite.iter("testcase")]
    assert names[:2] == ["gather/matrix-0 (30 cases)", "gather/matrix-1 (30 cases)"]
    assert names[-1] == other.case
    assert suite.find("properties/property[@name='cases'][@value='12001']") is not None
    # 400 matrices and a failure.
    assert (suite.get("tests"), suite.get("failures")) == ("401", "1")


def test_suites_are_operators_and_cases_have_file_and_line() -> None:
    root = junit_xml(logs.everything())
    names = [suite.get("name") for suite in root.iter("testsuite")]
    assert names == ["ARGMIN", "GATHER", "JOIN", "SCATTER_ELEMENTS", "TILE"]
    case = root.find("testsuite[@name='JOIN']/testcase")
    assert case is not None
    assert case.attrib == {
        "classname": "dmlconf.JOIN",
        "name": "join/boundary/many-inputs",
        "time": "61.5000",
        "file": "cases/join/boundary.yaml",
        "line": "7",
    }


def test_a_case_without_a_location_names_no_file() -> None:
    case = junit_xml(logs.run_log(logs.NOT_RUN)).find("testsuite/testcase")
    assert case is not None
    assert "file" not in case.attrib


def test_log_without_its_end_counts_missing_verdicts() -> None:
    for selected, missing in ((20, 10), (10, 0)):
        error = junit_xml(logs.dead(logs.everything(), selected)).find(
            "testsuite[@name='not reached']/testcase/error"
        )
        assert error is not None
        actual = f"{missing} of {selected} selected cases have no verdict"
        assert error.get("message") == actual
    assert junit_xml(logs.everything()).find("testsuite[@name='not reached']") is None


def test_a_failure_shows_elements_location_and_command() -> None:
    failure = junit_xml(logs.run_log(logs.FAILED)).find(".//failure")
    assert failure is not None
    text = failure.text or ""
    assert failure.get("type") == "wrong values"
    assert "OutputTensor[0, 2]: expected 1.5, actual inf" in text
    assert "at cases/gather/matrix.yaml:12" in text
    assert "dmlconf run cases/gather " in text


def test_properties_have_the_environment_and_complete_digests() -> None:
    suite = junit_xml(logs.plain()).find("testsuite")
    assert suite is not None
    actual = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert actual["suite"] == logs.HEADER.suite_digest
    assert actual["catalogue"] == logs.HEADER.catalogue_digest
    assert actual["platform"] == "Windows-11-10.0.26100-SP0"
    assert "adapter" not in actual
    directml = junit_xml(logs.everything()).find("testsuite")
    assert directml is not None
    actual = {p.get("name"): p.get("value") for p in directml.iter("property")}
    assert (actual["adapter"], actual["driver"]) == ("Contoso Graphics 9000", "32.0.15.6094")


def test_only_a_failure_has_the_facts_of_its_desc() -> None:
    facts = {"InputTensor": "FLOAT16 2x3", "Axis": 1, "Repeats": [1, 2]}
    log = logs.run_log(logs.FAILED.of_case(facts=facts), logs.PASSED.of_case(facts=facts))
    failed, passed = junit_xml(log).iter("testcase")
    actual = {p.get("name"): p.get("value") for p in failed.iter("property")}
    assert actual == {"InputTensor": "FLOAT16 2x3", "Axis": "1", "Repeats": "[1, 2]"}
    assert passed.find("properties") is None


def test_each_suite_has_the_start_of_the_run_in_utc() -> None:
    suites = [*junit_xml(logs.dead(logs.everything(), 20)).iter("testsuite")]
    assert suites[-1].get("name") == "not reached"
    assert {suite.get("timestamp") for suite in suites} == {"2026-11-21T05:00:00+00:00"}


def test_characters_that_xml_forbids_are_stripped() -> None:
    text = junit.render(logs.hostile())
    for forbidden in "\x1b\x07\ufffe\ud800":
        assert forbidden not in text, ascii(forbidden)
    case = ElementTree.fromstring(text.encode("utf-8")).find(".//testcase")
    assert case is not None
    assert case.get("name") == "gather/[red]a|b[/] `c` ```d``` <e>&[31m\\u202e\r\n# f"


@pytest.mark.parametrize("character", ["\u202e", "\u2028", "\x85", "\x9b", "\u200b"])
def test_characters_that_change_how_text_is_shown_are_escaped(character: str) -> None:
    assert logs.FAILED.reason is not None
    reason = replace(logs.FAILED.reason, message=f"a{character}b", diagnostics=character)
    log = logs.run_log(logs.FAILED.judged(reason=reason).of_case(location=f"x{character}.yaml:1"))
    text = junit.render(log)
    assert character not in text
    assert character.encode("unicode_escape").decode() in text


@pytest.mark.slow
def test_report_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from dmlconf.reports.runs import junit; from tests.reports import logs;"
        "print(ascii(junit.render(logs.everything())))"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1] == ascii(junit.render(logs.everything())) + "\n"
