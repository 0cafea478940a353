"""The kinds of paths that arguments and options take."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

import click

from dmlconf.documents.problems import printable

__all__ = ["ANY_PATH", "EXISTING_FILE", "EXISTING_FOLDER", "FILE", "FOLDER"]


class _Path(click.Path):
    """A path that is not empty: as `Path("")`, an unset variable would mean this folder.

    A folder in place of a file, or a file in place of a folder, is called so.
    """

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        if value == "":
            message = "the path is empty; name a file or folder (perhaps a variable is not set)"
            self.fail(message, param, ctx)
        shown = printable(os.fspath(value))
        mode = _mode(Path(value))
        if not self.dir_okay and mode is not None and stat.S_ISDIR(mode):
            self.fail(f"{shown} is a folder; name a file", param, ctx)
        if not self.file_okay and mode is not None and stat.S_ISREG(mode):
            self.fail(f"{shown} is a file; name a folder", param, ctx)
        if self.exists and mode is None:
            self.fail(f"there is no {'file' if self.file_okay else 'folder'} {shown}", param, ctx)
        return super().convert(value, param, ctx)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return None


ANY_PATH: Final = _Path(path_type=Path)
FILE: Final = _Path(path_type=Path, dir_okay=False)
EXISTING_FILE: Final = _Path(path_type=Path, dir_okay=False, exists=True)
FOLDER: Final = _Path(path_type=Path, file_okay=False)
EXISTING_FOLDER: Final = _Path(path_type=Path, file_okay=False, exists=True)
