"""Check the files a run will write before its first case, so that a typo costs no hours."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from dmlconf.documents.problems import printable

__all__ = ["prepare_files"]


def prepare_files(files: Sequence[tuple[str, Path]]) -> None:
    """Create the folders that files need, all or none, and check that each file can be written.

    Args:
        files: each preceded by the option that names it, for messages.

    Raises:
        click.UsageError: a file cannot be written; the created folders are removed.
    """
    folders: list[Path] = []
    for option, file in files:
        try:
            folders += _make_folders(file.parent)
            _try(file)
        except (OSError, ValueError) as error:
            for folder in reversed(folders):
                with suppress(OSError):
                    folder.rmdir()
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"{option} cannot be written: {reason}"
            raise click.UsageError(printable(message)) from error


def _make_folders(folder: Path) -> list[Path]:
    """Create a folder and its missing parents; return the new ones, the outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir()
    return missing[::-1]


def _try(file: Path) -> None:
    """Raise `OSError` if the file cannot be written; leave what is there as it is."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        # A leftover empty file would suggest a run that may never happen.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        file.unlink()
        return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        os.close(os.open(file, os.O_WRONLY))
    # A pipe is left alone: its reader would take closing it for the end of the report.
