"""The slowest cases of a run."""

from __future__ import annotations

from dmlconf.run_log.log import RunLog

__all__ = ["slowest_lines"]


def slowest_lines(log: RunLog, count: int) -> list[str]:
    """Return the cases that took the backend longest, the slowest first, with their seconds."""
    slowest = sorted(log.verdicts, key=lambda verdict: -verdict.seconds)[:count]
    return [f"{verdict.seconds:8.3f} s  {verdict.case}" for verdict in slowest]
