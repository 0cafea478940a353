"""Ask the system about processes, for tests."""

from __future__ import annotations

from pathlib import Path

__all__ = ["running"]


def running(process: int) -> bool:
    """Return whether a process is there and has not ended, on Linux."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # It may end after the file was opened.
        return False
    return state not in "ZX"
