"""The location of a case as CI servers expect it: a file, relative if possible, and a line."""

from __future__ import annotations

from pathlib import Path, PurePath

from dmlconf.resources import cases_directory

__all__ = ["file_and_line"]


def file_and_line(location: str) -> tuple[str, int | None]:
    """Return the file of a location, with slashes, and the line.

    A location without a line is returned as it is, with None as the line. A path below the working
    directory, or else below the folder that holds the bundled suite's `cases`, becomes relative to
    it.
    """
    file, colon, line = location.rpartition(":")
    if not colon or not line.isdecimal():
        return location, None
    return _relative(PurePath(file)).as_posix(), int(line)


def _relative(path: PurePath) -> PurePath:
    if not path.is_absolute():
        return path
    for root in (_working_directory(), cases_directory().parent):
        if root is not None and path.is_relative_to(root):
            return path.relative_to(root)
    return path


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # The directory was removed.
        return None
