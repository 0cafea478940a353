"""The kinds of paths that arguments and options take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

__all__ = ["ANY_PATH", "EXISTING_FILE", "EXISTING_FOLDER", "FILE", "FOLDER"]


class _Path(click.Path):
    """A path that is not empty: as `Path("")`, an unset variable would mean this folder."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        if value == "":
            message = "the path is empty; name a file or folder (perhaps a variable is not set)"
            self.fail(message, param, ctx)
        return super().convert(value, param, ctx)


ANY_PATH: Final = _Path(path_type=Path)
FILE: Final = _Path(path_type=Path, dir_okay=False)
EXISTING_FILE: Final = _Path(path_type=Path, dir_okay=False, exists=True)
FOLDER: Final = _Path(path_type=Path, file_okay=False)
EXISTING_FOLDER: Final = _Path(path_type=Path, file_okay=False, exists=True)
