"""Of three runs of the same cases, the outlier is found: the run that alone fails or passes.

The tested code is in `dmlconf/comparison/outliers.py`, `dmlconf/reports/comparisons/outliers.py`
and `dmlconf/cli/commands/results/compare.py`.
"""

from __future__ import annotations

from pathlib import Path

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
"""Logs of three runs and their backends; only the last has wrong outputs, in some cases."""


def test_the_run_that_alone_fails_or_alone_passes_a_case_is_the_outlier(tmp_path: Path) -> None:
    for name, backend in RUNS.items():
        dmlconf_here(
            tmp_path, "run", "-o", "GATHER", "--tag", "documented", "-b", backend, "--log", name
        )
    runs = [read_log(tmp_path / name) for name in RUNS]
    found = outliers(runs)
    assert found
    assert {(each.run, each.fails) for each in found} == {(2, True)}
    assert all("example-1" in each.case for each in found)
    assert outliers(runs[:2]) == []
    done = dmlconf_here(tmp_path, "compare", *RUNS, "--quiet")
    assert done.returncode == 1
    assert f"wrong.jsonl alone fails {len(found)} and alone passes 0" in done.stdout
    lines = done.stdout.splitlines()
    first = found[0].case
    (at,) = (at for at, line in enumerate(lines) if line.startswith(f"  {first} ("))
    assert longest_handle(first).startswith(lines[at].partition("(")[2].rstrip(")"))
    assert "    reference.jsonl: passed; right.jsonl: passed; wrong.jsonl: -" in lines[at + 1]
    assert "reference.jsonl alone fails 0 and alone passes 0" in done.stdout
    # With the wrong run twice, the reference alone passes.
    passing = outliers([runs[2], runs[2], runs[0]])
    assert {(each.run, each.fails) for each in passing} == {(2, False)}


def run_of_one_case(status: Status) -> RunLog:
    """Return the log of a run whose only case has this status."""
    return logs.run_log(logs.PASSED.judged(status=status))


def test_an_outlier_needs_three_runs_that_pass_or_fail_and_a_verdict_in_each_run() -> None:
    passed, failed, unsupported = map(
        run_of_one_case, (Status.PASSED, Status.FAILED, Status.UNSUPPORTED)
    )
    [found] = outliers([passed, unsupported, failed, passed])
    assert (found.run, found.fails) == (2, True)
    assert outliers([passed, unsupported, failed]) == []  # Only two pass or fail.
    assert outliers([passed, failed, passed, logs.run_log()]) == []  # The last lacks the case.
    assert outliers([passed, failed, passed, failed]) == []  # None is alone.


def test_the_names_of_logs_cannot_move_the_cursor() -> None:
    verdicts = logs.PASSED, logs.PASSED, logs.PASSED.judged(status=Status.FAILED)
    found = [Outlier(logs.PASSED.case, logs.PASSED.operator, 2, verdicts)]
    shown = "".join(map(str, render_outliers(found, ["a", "b", "c\x1b[2J"])))
    assert "c\\x1b[2J alone fails 1" in shown
    assert "\x1b" not in shown
