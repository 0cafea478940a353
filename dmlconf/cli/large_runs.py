"""Reports of large runs, written by a separate process: this one has the plan in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dmlconf.cli.child import child_command
from dmlconf.cli.console import say
from dmlconf.cli.reporting import Report

__all__ = ["shown_elsewhere"]


def shown_elsewhere(log: Path, reports: Sequence[Report], details: Mapping[str, Any]) -> bool:
    """Write a run's reports and its table as `dmlconf report` does; return whether all succeeded.

    Args:
        log: the run's log.
        reports: formats and files.
        details: how much the terminal shows, as for `show`.
    """
    command = child_command("report", str(log))
    for name, file in reports:
        command += ["--report", name if file is None else f"{name}:{file}"]
    for name in ("verbose", "quiet"):
        command += [f"--{name}"] if details[name] else []
    command += ["--color", str(details["color"]), "--durations", str(details["durations"])]
    if details["failures"] is not None:
        failures = details["failures"]
        command += ["--show-failures", "all" if failures == sys.maxsize else str(failures)]
    sys.stdout.flush()
    code = subprocess.run(command, check=False).returncode
    if code < 0:
        say(f"Error: the report process was killed by signal {-code}; the log has all verdicts")
    return code == 0
