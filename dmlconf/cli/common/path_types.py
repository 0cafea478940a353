"""The kinds of paths that arguments and options take."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

__all__ = ["ANY_PATH", "EXISTING_FILE", "EXISTING_FOLDER", "FILE", "FOLDER"]

ANY_PATH: Final = click.Path(path_type=Path)
FILE: Final = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER: Final = click.Path(path_type=Path, file_okay=False, exists=True)
