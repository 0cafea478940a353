"""The log of a run that a command makes."""

from __future__ import annotations

import os
from pathlib import Path

from dmlconf.cli.console import warn
from dmlconf.cli.logs import new_log

__all__ = ["default_log"]


def default_log() -> Path:
    """Return the path of a new run log where the user names none; elsewhere if it has no place."""
    try:
        return new_log()
    except OSError as error:
        import tempfile  # Seldom needed, and it takes a while to import.

        handle, name = tempfile.mkstemp(prefix="dmlconf-run-", suffix=".jsonl")
        os.close(handle)
        warn(f"{error.strerror}: the run log is {name}")
        return Path(name)
