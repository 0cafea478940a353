"""A case that a backend cannot express (`Declined`) neither passes nor fails.

The tested code is in `dmlconf/judging/judge.py`, `dmlconf/workers/boundary.py`,
`dmlconf/cli/options/run_exit_code.py`, `dmlconf/reports/runs/json_report.py`,
`dmlconf/comparison/compare.py` and `dmlconf/expectations/recorder.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlconf.backends.protocol import Breakdown, Declined
from dmlconf.backends.recording.file import read_recording
from dmlconf.cases.loading.loader import valid_case
from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from dmlconf.workers.boundary import checked_outcome
from tests.bundled import bundled
from tests.cli.process import dmlconf_here

DECLINES_SOME = "faulty:declines,on=example-1"
"""A backend that declines cases with `example-1` in their identifiers."""

SELECTED = ("--operator", "GATHER", "--tag", "documented")
"""Options that select cases, of which DECLINES_SOME declines some."""


def test_a_run_with_only_declined_cases_has_exit_code_7(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", *SELECTED, "-b", "faulty:declines")
    assert done.returncode == 7, done.stdout
    assert "the backend has no counterpart of this operator: GATHER" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code"),
    [((), 0), (("--fail-on", "unsupported"), 1), (("--min-passed", "100"), 1)],
)
def test_declined_cases_beside_passes_fail_a_run_only_on_request(
    tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    log = tmp_path / "run.jsonl"
    done = dmlconf_here(
        tmp_path,
        "run",
        *SELECTED,
        "-b",
        DECLINES_SOME,
        "--log",
        str(log),
        "--report",
        "json:r.json",
        *options,
    )
    assert done.returncode == code, done.stdout
    declined = [v for v in read_log(log).verdicts if v.status is Status.UNSUPPORTED]
    assert declined
    assert {v.reason.kind for v in declined if v.reason} == {ReasonKind.NOT_EXPRESSIBLE}
    report = json.loads((tmp_path / "r.json").read_text("utf-8"))
    total = len(report["verdicts"])
    assert report["declined"] == {"GATHER": {"cases": len(declined), "of": total}}


@pytest.mark.slow
def test_compare_reports_a_declined_case_as_another_status(tmp_path: Path) -> None:
    for name, backend in (("one", "numpy"), ("other", DECLINES_SOME)):
        dmlconf_here(tmp_path, "run", *SELECTED, "-b", backend, "--log", f"{name}.jsonl")
    done = dmlconf_here(tmp_path, "compare", "one.jsonl", "other.jsonl")
    assert done.returncode == 0, done.stdout
    assert "passed, now unsupported: not expressible by the backend" in done.stdout


def test_record_names_declined_cases_and_leaves_them_out(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "record", *SELECTED, "-b", DECLINES_SOME, "-o", "x.dmlrec")
    assert "not expressible by the backend" in done.stderr, done.stderr
    recorded = read_recording(tmp_path / "x.dmlrec").entries
    assert recorded
    assert not [name for name in recorded if "example-1" in name]


def test_a_decline_without_a_reason_is_a_breakdown() -> None:
    case = valid_case(next(iter(bundled("tile/documented.yaml").plan())))
    reasonless = Declined(None)  # type: ignore[arg-type]  # The reason must be a text.
    assert isinstance(checked_outcome(reasonless, case), Breakdown)
    assert checked_outcome(Declined("no such operator"), case) == Declined("no such operator")
