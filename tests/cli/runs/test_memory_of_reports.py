"""The plan of a run is freed before its reports are made, because both can be large.

Only cases outside the bundled suite are kept, for hints.

The tested code is in `dmlconf/cli/runs/run_target.py` and `dmlconf/cli/output/hints.py`.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.cases.model import PlannedCase
from dmlconf.cli.options.run_exit_code import Demands
from dmlconf.cli.output.hints import outside_the_bundled_suite
from dmlconf.cli.runs import run_target
from dmlconf.cli.runs.run_target import Presentation, run_and_report
from dmlconf.engine.shards import selected
from dmlconf.engine.target import local_target
from dmlconf.reports.formats import Format, Report
from dmlconf.run_log.log import RunLog
from tests.bundled import bundled
from tests.engine.cases import plan
from tests.engine.runs import run_of


class Plan(list[PlannedCase]):
    """A plan whose deletion can be observed."""


@pytest.mark.parametrize("largest_hinted", [1, 1000], ids=["without-hints", "with-hints"])
def test_the_plan_is_freed_before_reports_are_made(
    tmp_path: Path, largest_hinted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_target, "LARGEST_HINTED_PLAN", largest_hinted)
    planned = Plan(plan(tmp_path))
    count = len(planned)
    watched = weakref.ref(planned)
    alive: list[bool] = []

    def render(log: RunLog) -> str:
        alive.append(watched() is not None)
        return f"{len(log.verdicts)}\n"

    runs = [replace(run_of(tmp_path, planned), chosen=selected(planned))]
    shown = Presentation(
        log_file=tmp_path / "run.jsonl",
        resume=False,
        reports=[Report(Format("count", render), tmp_path / "count.txt")],
        dump_folder=None,
        demands=Demands(),
        base_run=None,
        fail_slower=None,
        details={
            "verbose": False,
            "quiet": False,
            "color": "never",
            "durations": 0,
            "failures": None,
        },
    )
    del planned
    run_and_report(runs, local_target(runs[0].how), shown)
    assert (tmp_path / "count.txt").read_text("utf-8") == f"{count}\n"
    assert alive == [False]


def test_hints_keep_only_cases_outside_the_bundled_suite(tmp_path: Path) -> None:
    own = plan(tmp_path)
    bundled_cases = list(bundled("tile/documented.yaml").plan())
    assert bundled_cases
    assert outside_the_bundled_suite([*bundled_cases, *own]) == own
