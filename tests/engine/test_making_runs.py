"""Scripts make runs with `plan_run`, and may import it from the former module `planning`.

The tested code is in `dmlconf/engine/making_runs.py` and `dmlconf/engine/planning.py`.
"""

from __future__ import annotations

from dmlconf.engine import making_runs, planning
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Judged
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Status


def test_script_runs_cases_by_name() -> None:
    run = making_runs.plan_run([cases_directory() / "tile"], cases=["tile/documented/example-1*"])
    with Engine(run) as engine:
        judged = [event.verdict for event in engine.execute() if isinstance(event, Judged)]
    assert judged
    assert all(verdict.case.startswith("tile/documented/example-1") for verdict in judged)
    assert {verdict.status for verdict in judged} == {Status.PASSED}


def test_former_module_planning_still_has_its_functions() -> None:
    assert planning.plan_run is making_runs.plan_run
    assert planning.outcomes_of is making_runs.outcomes_of
