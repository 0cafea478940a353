"""The name that `making_runs` had in 0.2.0, which scripts may import until 1.0."""

from __future__ import annotations

from dmlconf.engine.making_runs import outcomes_of, plan_run

__all__ = ["outcomes_of", "plan_run"]
