"""The default log of a run."""

from __future__ import annotations

import os
from pathlib import Path

from dmlconf.cli.console import warn
from dmlconf.cli.logs import new_log

__all__ = ["default_log"]


def default_log() -> Path:
    """Return the path of a new run log if the user names none; else a temporary file."""
    try:
        return new_log()
    except OSError as error:
        import tempfile  # Seldom needed, and slow to import.

        handle, name = tempfile.mkstemp(prefix="dmlconf-run-", suffix=".jsonl")
        os.close(handle)
        warn(f"{error.strerror}: the run log is {name}")
        return Path(name)
