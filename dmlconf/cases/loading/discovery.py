"""Find case files under paths."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path

from dmlconf.catalogue.loader import UnknownOperatorError, operator_name
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.limits import MOST_FOLDERS

__all__ = ["case_files", "distinct", "files_under"]


def case_files(paths: Iterable[Path], elsewhere: Collection[Path] = ()) -> list[Path]:
    """Return the case files under the paths, each once, in the order of the paths.

    The files under one path are sorted.

    Args:
        elsewhere: paths whose cases are in shared files; they need not exist or hold a case file.

    Raises:
        InvalidFilesError: a path does not exist or cannot be read, or a folder has no case file.
    """
    files: list[Path] = []
    problems = []
    given = list(paths)
    for path in given:
        try:
            inside = files_under(path)
        except OSError as error:
            unreadable = Path(error.filename) if isinstance(error.filename, str) else path
            problems.append(Problem(unreadable, f"cannot be read: {error.strerror}"))
            continue
        if not inside and path in elsewhere:
            continue
        if inside is None:
            hint = _hint_for(path)
            problems.append(Problem(path, "there is no such file or folder", hint=hint))
        elif not inside:
            hint = "case files end in .yaml"
            problems.append(Problem(path, "the folder holds no case file", hint=hint))
        files += inside or ()
    if problems:
        raise InvalidFilesError(problems)
    # Below a single path, each file is found once: links to folders are not followed.
    return distinct(files) if len(given) > 1 else files


def _hint_for(path: Path) -> str | None:
    """Return which option chooses the cases that a path names that does not exist, if any."""
    if "*" in path.name:
        return f"--case '{path}' chooses cases by identifier"
    try:
        name = operator_name(str(path))
    except UnknownOperatorError:
        return None
    return f"-o {name} chooses the cases of an operator"


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Return the first path of each file; a link to a file counts as another file."""
    folders: dict[str, str] = {}
    found: dict[str, Path] = {}
    for path in dict.fromkeys(paths):
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        found.setdefault(os.path.join(folders[folder], name), path)  # noqa: PTH118  # Text is faster.
    return list(found.values())


def files_under(path: Path) -> list[Path] | None:
    """Return the case files in a folder or below, or a file itself; None if there is neither.

    Case files of a folder end in `.yaml` or `.yml` and are sorted by path. Links to folders inside
    it are not followed.

    Raises:
        OSError: a path cannot be read, or there are more than `MOST_FOLDERS` folders.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not stat.S_ISDIR(mode):
        return [path]
    found: list[str] = []
    waiting, entered = [str(path)], 0
    while waiting:
        entered += 1
        if entered > MOST_FOLDERS:
            raise OSError(0, f"more than {MOST_FOLDERS:,} folders", str(path))
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif _is_case_file(entry):
                    found.append(entry.path)
    return [Path(each) for each in sorted(found, key=_parts)]


def _parts(path: str) -> list[str]:
    return os.path.normcase(path).split(os.sep)  # noqa: PTH206  # Text is faster.


def _is_case_file(entry: os.DirEntry[str]) -> bool:
    stem, _, suffix = entry.name.rpartition(".")
    return bool(stem) and suffix in ("yaml", "yml") and not entry.is_dir()
