"""The report `json` and run logs fit their schemas.

The tested code is in `dmlconf/reports/runs/json_report.py`, `dmlconf/run_log/log.py`,
`schemas/report.schema.json` and `schemas/run-log.schema.json`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from dmlconf.documents.schema import bundled_schema, validator
from dmlconf.reports.runs import json_report
from dmlconf.run_log.log import FORMAT, RunLog, verdict_data
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.reports import logs

LOGS = {
    "everything": logs.everything(),
    "plain": logs.plain(),
    "ended-early": logs.dead(logs.everything(), 20),
    "hostile": logs.hostile(),
}


def refuse_literal(literal: str) -> None:
    """Refuse `NaN` and `Infinity`, which Python reads although they are no JSON."""
    raise AssertionError(f"{literal} is not JSON")


def parsed(log: RunLog) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json_report.render(log), parse_constant=refuse_literal)
    return data


def log_lines(log: RunLog) -> list[dict[str, Any]]:
    return [
        json.loads(line, parse_constant=refuse_literal) for line in logs.text_of(log).splitlines()
    ]


@pytest.mark.parametrize("name", LOGS)
def test_the_json_report_fits_its_schema(name: str) -> None:
    assert not list(validator(bundled_schema("report")).iter_errors(parsed(LOGS[name])))


@pytest.mark.parametrize("name", LOGS)
def test_every_line_of_a_run_log_fits_its_schema(name: str) -> None:
    checker = validator(bundled_schema("run-log"))
    lines = log_lines(LOGS[name])
    assert len(lines) >= 2
    for line in lines:
        assert not list(checker.iter_errors(line))


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"version": 2},
        {"schema": "other"},
        {"summary": {"passed": 1}},
        {"environment": {}},
        {"verdicts": [{"case": "a"}]},
    ],
)
def test_the_schema_of_reports_refuses_invalid_reports(change: dict[str, Any]) -> None:
    assert not validator(bundled_schema("report")).is_valid(parsed(logs.everything()) | change)


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"status": "great"},
        {"expectation": "guessed"},
        {"seconds": -1},
        {"figures": {"OutputTensor": {}}},
        {"reason": {"kind": "mood", "message": "", "differences": [], "diagnostics": ""}},
    ],
)
def test_the_schemas_refuse_invalid_verdicts(change: dict[str, Any]) -> None:
    report = parsed(logs.run_log(logs.FAILED))
    report["verdicts"][0] |= change
    assert not validator(bundled_schema("report")).is_valid(report)
    line = log_lines(logs.run_log(logs.FAILED))[1] | change
    assert not validator(bundled_schema("run-log")).is_valid(line)


@pytest.mark.parametrize("started", ["2026-11-21T05:00:00", "2026-11-21T05:00:00+02:00", "today"])
def test_the_schemas_refuse_times_that_are_not_in_utc(started: str) -> None:
    log = logs.run_log(logs.PASSED, started=started)
    assert not validator(bundled_schema("report")).is_valid(parsed(log))
    assert not validator(bundled_schema("run-log")).is_valid(log_lines(log)[0])


@pytest.mark.parametrize("name", ["report", "run-log"])
def test_the_schemas_list_every_status_and_kind_of_reason(name: str) -> None:
    definitions = bundled_schema(name)["$defs"]
    assert definitions["status"]["enum"] == [str(status) for status in Status]
    kinds = definitions["reason_kind"]["enum"]
    assert kinds == [str(kind) for kind in ReasonKind]


def test_the_schemas_agree_on_shared_definitions() -> None:
    report, log = bundled_schema("report"), bundled_schema("run-log")
    shared = report["$defs"].keys() & log["$defs"].keys()
    assert {"verdict", "reason", "figures", "environment"} <= shared
    assert [name for name in shared if report["$defs"][name] != log["$defs"][name]] == []


def test_the_schemas_state_the_format_versions_of_the_code() -> None:
    report, log = bundled_schema("report"), bundled_schema("run-log")
    assert report["properties"]["version"]["const"] == json_report.VERSION
    assert log["$defs"]["header"]["properties"]["format"]["const"] == FORMAT


def test_the_report_and_its_verdicts_have_the_documented_members() -> None:
    report = parsed(logs.everything())
    assert list(report) == [
        "schema",
        "version",
        "environment",
        "summary",
        "room",
        "run",
        "declined",
        "far_from_devices",
        "shared_properties",
        "verdicts",
    ]
    assert (report["schema"], report["version"]) == ("dmlconf-report", 1)
    assert report["environment"] == logs.HEADER.environment
    assert set(report["verdicts"][0]) == {
        "case",
        "operator",
        "tags",
        "status",
        "expectation",
        "reason",
        "figures",
        "seconds",
        "location",
    }


def test_the_summary_counts_every_status() -> None:
    counts = parsed(logs.everything())["summary"]
    assert counts == {str(status): 1 for status in Status} | {"passed": 3}


def test_verdicts_of_the_report_equal_those_of_the_log() -> None:
    verdicts = [line for line in log_lines(logs.everything()) if line.pop("record") == "verdict"]
    assert [line.pop("place") for line in verdicts] == list(range(len(verdicts)))
    assert parsed(logs.everything())["verdicts"] == verdicts
    assert verdicts[3] == json.loads(json.dumps(verdict_data(logs.FAILED)))


def test_infinities_and_nan_are_written_as_text() -> None:
    verdict = parsed(logs.run_log(logs.FAILED))["verdicts"][0]
    differences = verdict["reason"]["differences"]
    assert [d["expected"] for d in differences][:3] == [1.5, "-inf", "nan"]
    assert differences[0]["actual"] == "inf"
    assert verdict["figures"]["OutputTensor"]["worst_ulp"] == "inf"


def test_run_that_ended_early_counts_missing_cases() -> None:
    report = parsed(logs.dead(logs.everything(), 20))
    assert report["summary"]["not run"] == 11  # One verdict, and 10 cases without one.
    run = report["run"]
    assert (run["complete"], run["finished"], run["seconds"]) == (False, None, None)
    assert run["selected"] == 20


def test_run_is_complete_only_if_every_case_ran() -> None:
    assert parsed(logs.plain())["run"]["complete"] is True
    assert parsed(logs.run_log(logs.FAILED, logs.PASSED))["run"]["complete"] is True
    assert parsed(logs.run_log(logs.PASSED, logs.NOT_RUN))["run"]["complete"] is False


def test_run_has_paths_options_digest_and_duration() -> None:
    run = parsed(logs.everything())["run"]
    assert run["paths"] == list(logs.HEADER.paths)
    assert run["options"] == {"operators": ["GATHER"]}
    assert run["suite_digest"] == logs.HEADER.suite_digest
    assert run["seconds"] == 62.5


def test_path_that_utf_8_cannot_encode_is_kept() -> None:
    log = logs.run_log(logs.PASSED.of_case(location="cases/\udcff.yaml:1"))
    json_report.render(log).encode("utf-8")
    assert parsed(log)["verdicts"][0]["location"] == "cases/\udcff.yaml:1"
