"""Write new files, replace files as a whole, and check that this is possible."""

from __future__ import annotations

from os import getpid
from pathlib import Path

import click

from dmlconf.cli.output.preflight import require_replaceable, require_writable_file
from dmlconf.documents.files import remove_folders, require_writable, write_in
from dmlconf.documents.problems import ExpectedError, printable
from dmlconf.documents.whole_files import write_whole

__all__ = ["OutputError", "replaced", "require_folder", "write_new"]


class OutputError(ExpectedError):
    """An output file or folder cannot be read or, as on a full disk, written."""


def replaced(
    path: Path, content: bytes | None, option: str = "-o", *, own: str | None = None
) -> None:
    """Write or replace a file as `whole_file` does.

    Args:
        content: the file's bytes; None to only check that a file can be written in its folder.
        option: the option that names the file, for messages.
        own: the kind of file that is written, as `recognised` names it.

    Raises:
        click.UsageError: the check failed, or the file must not be overwritten, such as a case
            file.
        OutputError: the content could not be written.
    """
    require_replaceable(f"{option} {path}", path, own)
    if content is None:
        try:
            remove_folders(require_writable_file(path))
        except OSError as error:
            message = f"{option} {path}: {error.strerror or error}"
            raise click.UsageError(printable(message)) from error
        return
    try:
        write_whole(path, content)
    except OSError as error:
        raise OutputError(printable(f"{option} {path}: {error.strerror or error}")) from error


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet; create missing folders.

    Raises:
        click.UsageError: the file exists, or cannot be written.
    """

    def write() -> None:
        stream = path.open("x", encoding="utf-8")
        try:
            with stream:
                stream.write(text)
        except OSError:
            path.unlink(missing_ok=True)
            raise

    try:
        write_in(path.parent, write)
    except FileExistsError as error:
        message = f"--output {path}: it exists already; remove it or choose another name"
        raise click.UsageError(printable(message)) from error
    except OSError as error:
        raise click.UsageError(printable(f"--output {path}: {error.strerror}")) from error


def require_folder(folder: Path, option: str = "-o") -> None:
    """Check that a folder exists or can be created, and that files can be written there.

    Raises:
        click.UsageError: the folder cannot be created or written to.
    """
    try:
        remove_folders(require_writable(folder / f".dmlconf.{getpid()}.tmp"))
    except OSError as error:
        message = f"{option} {folder}: {error.strerror or error}"
        raise click.UsageError(printable(message)) from error
