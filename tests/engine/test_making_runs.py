"""Scripts make runs by `plan_run`; they may import it by the name that its module had in 0.2.0.

The tested code is in `dmlconf/engine/making_runs.py` and `dmlconf/engine/planning.py`.
"""

from __future__ import annotations

from dmlconf.engine import making_runs, planning
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Judged
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Status


def test_a_script_runs_cases_by_name() -> None:
    run = making_runs.plan_run([cases_directory() / "tile"], cases=["tile/documented/example-1*"])
    with Engine(run) as engine:
        judged = [event.verdict for event in engine.execute() if isinstance(event, Judged)]
    assert judged
    assert all(verdict.case.startswith("tile/documented/example-1") for verdict in judged)
    assert {verdict.status for verdict in judged} == {Status.PASSED}


def test_plan_run_and_outcomes_of_can_be_imported_from_the_former_module_planning() -> None:
    assert planning.plan_run is making_runs.plan_run
    assert planning.outcomes_of is making_runs.outcomes_of
