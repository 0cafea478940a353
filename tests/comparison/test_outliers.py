"""The outlier among runs is the one that alone fails or alone passes a case.

The tested code is in `dmlconf/comparison/outliers.py`, `dmlconf/reports/comparisons/outliers.py`
and `dmlconf/cli/commands/results/compare.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.handles import longest_handle
from dmlconf.comparison.outliers import Outlier, outliers
from dmlconf.reports.comparisons.outliers import render_outliers
from dmlconf.run_log.log import RunLog, read_log
from dmlconf.verdicts.status import Status
from tests.cli.process import dmlconf_here
from tests.reports import logs

RUNS = {
    "reference.jsonl": "numpy",
    "right.jsonl": "faulty:level=6_4",
    "wrong.jsonl": "faulty:negated,on=example-1",
}
"""Logs and backends of three runs; only the last has wrong outputs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run documented cases of GATHER on each backend of RUNS; return the folder of the logs."""
    path = tmp_path_factory.mktemp("runs")
    for name, backend in RUNS.items():
        dmlconf_here(
            path, "run", "-o", "GATHER", "--tag", "documented", "-b", backend, "--log", name
        )
    return path


@pytest.mark.slow
def test_run_that_alone_fails_or_passes_is_the_outlier(folder: Path) -> None:
    reference, right, wrong = (read_log(folder / name) for name in RUNS)
    found = outliers([reference, right, wrong])
    assert found
    assert {(each.run, each.fails) for each in found} == {(2, True)}
    failed = {each.case for each in wrong.verdicts if each.status is Status.FAILED}
    assert {each.case for each in found} == failed
    passing = outliers([wrong, wrong, reference])
    assert {(each.run, each.fails) for each in passing} == {(2, False)}
    assert {each.case for each in passing} == failed


@pytest.mark.slow
def test_compare_counts_outliers_and_shows_their_verdicts(folder: Path) -> None:
    found = outliers([read_log(folder / name) for name in RUNS])
    done = dmlconf_here(folder, "compare", *RUNS, "--quiet")
    assert done.returncode == 1
    assert f"wrong.jsonl alone fails {len(found)} and alone passes 0" in done.stdout
    lines = done.stdout.splitlines()
    first = found[0].case
    (at,) = (at for at, line in enumerate(lines) if line.startswith(f"  {first} ("))
    assert longest_handle(first).startswith(lines[at].partition("(")[2].rstrip(")"))
    assert "    reference.jsonl: passed; right.jsonl: passed; wrong.jsonl: -" in lines[at + 1]
    for name in ("reference.jsonl", "right.jsonl"):
        assert f"{name} alone fails 0 and alone passes 0" in done.stdout


def run_of_one_case(status: Status) -> RunLog:
    return logs.run_log(logs.PASSED.judged(status=status))


def test_outlier_needs_three_runs_that_pass_or_fail() -> None:
    passed, failed, unsupported = map(
        run_of_one_case, (Status.PASSED, Status.FAILED, Status.UNSUPPORTED)
    )
    [found] = outliers([passed, unsupported, failed, passed])
    assert (found.run, found.fails) == (2, True)
    assert outliers([passed, failed]) == []
    assert outliers([passed, unsupported, failed]) == []  # Only two pass or fail.
    assert outliers([passed, failed, passed, logs.run_log()]) == []  # The last lacks the case.
    assert outliers([passed, failed, passed, failed]) == []  # None is alone.


def test_the_names_of_logs_cannot_move_the_cursor() -> None:
    verdicts = logs.PASSED, logs.PASSED, logs.PASSED.judged(status=Status.FAILED)
    found = [Outlier(logs.PASSED.case, logs.PASSED.operator, 2, verdicts)]
    shown = "".join(map(str, render_outliers(found, ["a", "b", "c\x1b[2J"])))
    assert "c\\x1b[2J alone fails 1" in shown
    assert "\x1b" not in shown
