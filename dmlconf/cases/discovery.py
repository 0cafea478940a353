"""Find case files under paths."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

from dmlconf.documents.problems import InvalidFilesError, Problem

__all__ = ["case_files"]


def case_files(paths: Iterable[Path]) -> list[Path]:
    """Return the case files under the paths, in the order of the paths and then by name.

    Raises:
        InvalidFilesError: a path does not exist, or a folder has no case file.
    """
    files: list[Path] = []
    problems = []
    for path in paths:
        try:
            inside = _files_under(path)
        except OSError as error:  # Such as a name that is too long.
            problems.append(Problem(path, f"cannot be read: {error.strerror}"))
            continue
        if inside is None:
            problems.append(Problem(path, "there is no such file or folder"))
        elif not inside:
            hint = "case files end in .yaml"
            problems.append(Problem(path, "the folder holds no case file", hint=hint))
        files += inside or ()
    if problems:
        raise InvalidFilesError(problems)
    return list(dict.fromkeys(files))


def _files_under(path: Path) -> list[Path] | None:
    """Return the case files of a folder, or a file itself; None if there is neither.

    Raises:
        OSError: the path cannot be looked up, as when a name is too long. From Python 3.14 on,
            `Path.exists` and its like say that there is nothing.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not stat.S_ISDIR(mode):
        return [path]
    return sorted(
        file for file in path.rglob("*") if file.suffix in (".yaml", ".yml") and not file.is_dir()
    )
