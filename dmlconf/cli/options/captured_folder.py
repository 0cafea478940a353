"""Options of `capture` and `import`, and a check of the folder that they write to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from dmlconf.cli.common.command import option
from dmlconf.cli.common.parameter_types import WholeNumber
from dmlconf.cli.common.path_types import FOLDER
from dmlconf.cli.output.files import OutputError, require_folder

__all__ = ["block_nodes_option", "folder_error", "folder_option", "require_empty"]

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
    try:
        holds_files = folder.exists() and any(folder.iterdir())
    except OSError as error:
        raise folder_error(folder, error) from error
    if holds_files:
        raise click.UsageError(f"-o {folder}: the folder holds files already; name another one")
    require_folder(folder)


def folder_error(folder: Path, error: OSError) -> OutputError:
    """Return the error of a folder that cannot be read or written."""
    return OutputError(f"-o {folder}: {error.strerror or error}")
