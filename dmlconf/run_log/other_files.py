"""Say what a path is that was named as a run log, but is none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from dmlconf.documents.recognition import RUN_LOG, recognised
from dmlconf.documents.wording import first_names

__all__ = ["about_folder", "about_line", "logs_in"]

_MOST_NAMED: Final = 3
"""The most logs in a folder that a message names."""
_MOST_OPENED: Final = 100
"""The most files in a folder that are opened to find logs."""
_BYTE_ORDER_MARKS: Final = {
    b"\xef\xbb\xbf": "it begins with a byte order mark; save it as UTF-8 without one",
    b"\xff\xfe": "it is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "it is UTF-16 text; save it as UTF-8",
}


def about_folder(folder: Path) -> str:
    """Return that a path is a folder, and the names of run logs in it, the latest first."""
    names = logs_in(folder)
    if not names:
        return f"{folder} is a folder without run logs; name the file of a run log"
    one = "its run log" if len(names) == 1 else "one of its run logs"
    return f"{folder} is a folder; name {one}, {first_names(names, _MOST_NAMED)}"


def logs_in(folder: Path) -> list[str]:
    """Return the paths of run logs in a folder, the latest first; none if it cannot be read."""
    logs: list[tuple[float, str]] = []
    with suppress(OSError):
        for file in sorted(folder.glob("*.jsonl"), reverse=True)[:_MOST_OPENED]:
            if recognised(file) == RUN_LOG:
                logs.append((file.stat().st_mtime, str(file)))
    return [name for _, name in sorted(logs, reverse=True)]


def about_line(path: Path, line: bytes, error: ValueError) -> str:
    """Return why the first line of a file, which is not JSON, is no header of a run log."""
    kind = recognised(path)
    if kind == RUN_LOG and not line.endswith(b"\n"):
        return "its first line is cut off, so nothing of the run is left"
    if kind is not None and kind != RUN_LOG:
        return f"it is {kind}"
    for mark, message in _BYTE_ORDER_MARKS.items():
        if line.startswith(mark):
            return message
    return f"not JSON: {error}"
