"""Where run logs are kept that no option names."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

__all__ = ["DIRECTORY_VARIABLE", "latest_log", "new_log"]

DIRECTORY_VARIABLE: Final = "DMLCONF_LOG_DIRECTORY"
KEPT_LOGS: Final = 20


def _directory() -> Path:
    given = os.environ.get(DIRECTORY_VARIABLE)
    return Path(given) if given else Path(click.get_app_dir("dmlconf")) / "runs"


def _logs() -> list[Path]:
    return sorted(_directory().glob("run-*.jsonl"))


def new_log() -> Path:
    """Return the path of a new run log, and remove all but the latest ones.

    Raises:
        OSError: the directory cannot be made.
    """
    directory = _directory()
    directory.mkdir(parents=True, exist_ok=True)
    for old in _logs()[: -(KEPT_LOGS - 1)]:
        old.unlink(missing_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return directory / f"run-{stamp}-{os.getpid()}.jsonl"


def latest_log() -> Path | None:
    """Return the path of the latest run's log; None where there is none."""
    logs = _logs()
    return logs[-1] if logs else None
