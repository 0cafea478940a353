"""Where a run without `--log` writes its log, and where `fuzz` writes failing cases."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dmlconf.cli.common.logs import new_log, new_temporary_log
from dmlconf.cli.output.console import warn
from dmlconf.documents.problems import printable

__all__ = ["default_log", "failures_folder", "is_in_memory"]


def default_log() -> Path:
    """Create a run log in the user's folder of logs, else in a temporary one, else in memory.

    A log in memory is gone when this process ends.

    Raises:
        click.UsageError: no log can be written.
    """
    try:
        return new_log()
    except OSError as error:
        reason = _spoken(error)
    try:
        log = new_temporary_log()
    except OSError as error:
        reason = f"{reason}, and no temporary file: {_spoken(error)}"
    else:
        warn(printable(f"{reason}: the run log is {log}"))
        return log
    if not hasattr(os, "memfd_create"):
        raise click.UsageError(printable(f"no run log: {reason}; --log FILE names one"))
    log = Path(f"/proc/{os.getpid()}/fd/{os.memfd_create('run-log')}")
    warn(printable(f"{reason}: the run log will be gone after this run; --log FILE keeps it"))
    return log


def failures_folder(log: Path) -> Path:
    """Return the folder for failing cases of `fuzz`: beside the log, unless that is in memory."""
    return Path("fuzz-failures") if is_in_memory(log) else log.with_suffix(".failures")


def is_in_memory(log: Path) -> bool:
    """Return whether a log that `default_log` created is in memory."""
    return log.is_relative_to(f"/proc/{os.getpid()}/fd")


def _spoken(error: OSError) -> str:
    reason = error.strerror or str(error)
    if not error.filename:
        return reason
    path = Path(str(error.filename))
    if isinstance(error, FileExistsError):
        return f"{path} is a file, not a folder"
    return f"{path.parent if path.suffix == '.jsonl' else path}: {reason}"
