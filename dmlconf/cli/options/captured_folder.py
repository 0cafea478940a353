"""Options of `capture` and `import`, and a check of the folder that they write to."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Final

import click

from dmlconf.cli.common.command import option
from dmlconf.cli.common.parameter_types import WholeNumber
from dmlconf.cli.common.path_types import FOLDER
from dmlconf.cli.output.console import say
from dmlconf.cli.output.files import OutputError, require_folder
from dmlconf.documents.problems import printable

__all__ = ["block_nodes_option", "folder_error", "folder_option", "require_empty", "still_empty"]

folder_option: Final = option(
    "-o",
    "--output",
    "folder",
    type=FOLDER,
    default=Path("captured"),
    show_default=True,
    metavar="FOLDER",
    help="Write the case files to this folder, which is empty or does not exist.",
)

block_nodes_option: Final = option(
    "--block-nodes",
    type=WholeNumber(min=2),
    metavar="N",
    help="Write blocks of at most N nodes of each larger graph as cases, too.",
)


def require_empty(folder: Path) -> None:
    """Check that a folder is empty or absent, and that files can be written there.

    Raises:
        click.UsageError: the folder is not empty, or no files can be written.
        OutputError: the folder cannot be read.
    """
    if _holds_files(folder):
        raise click.UsageError(f"-o {folder}: the folder holds files already; name another one")
    require_folder(folder)


def still_empty(folder: Path) -> Path:
    """Return a folder that was empty or absent, or another one if it holds files by now.

    Another command may have written them there meanwhile.

    Raises:
        OutputError: the folder cannot be read.
    """
    if not _holds_files(folder):
        return folder
    others = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    other = next(each for each in others if not _holds_files(each))
    say(printable(f"{folder} holds files by now, so the cases are written to {other}"))
    return other


def _holds_files(folder: Path) -> bool:
    try:
        return folder.exists() and any(folder.iterdir())
    except OSError as error:
        raise folder_error(folder, error) from error


def folder_error(folder: Path, error: OSError) -> OutputError:
    """Return the error of a folder that cannot be read or written."""
    return OutputError(f"-o {folder}: {error.strerror or error}")
