"""Write new files, replace files atomically, and check that this is possible."""

from __future__ import annotations

from os import getpid
from pathlib import Path

import click

from dmlconf.cli.output.preflight import require_replaceable
from dmlconf.documents.files import make_folders, remove_folders
from dmlconf.documents.problems import ExpectedError, printable

__all__ = ["OutputError", "replaced", "require_folder", "write_new"]


class OutputError(ExpectedError):
    """An output file or folder cannot be read or, as on a full disk, written."""


def replaced(
    path: Path, content: bytes | None, option: str = "-o", *, own: str | None = None
) -> None:
    """Write or replace a file atomically, and create missing folders.

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
    temporary = path.with_name(f".{path.name}.{getpid()}.tmp")
    folders: list[Path] = []
    try:
        folders = make_folders(path.parent)
        try:
            temporary.write_bytes(content or b"")
            if content is not None:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
            if content is None:
                remove_folders(folders)
    except OSError as error:
        remove_folders(folders)
        message = printable(f"{option} {path}: {error.strerror or error}")
        if content is None:
            raise click.UsageError(message) from error
        raise OutputError(message) from error


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet; create missing folders.

    Raises:
        click.UsageError: the file exists, or cannot be written.
    """
    folders: list[Path] = []
    created = False
    try:
        folders = make_folders(path.parent)
        with path.open("x", encoding="utf-8") as stream:
            created = True
            stream.write(text)
    except FileExistsError as error:
        raise click.UsageError(printable(f"--output {path}: it exists already")) from error
    except OSError as error:
        if created:
            path.unlink(missing_ok=True)
        remove_folders(folders)
        raise click.UsageError(printable(f"--output {path}: {error.strerror}")) from error


def require_folder(folder: Path, option: str = "-o") -> None:
    """Check that a folder exists or can be created, and that files can be written there.

    Raises:
        click.UsageError: the folder cannot be created or written to.
    """
    try:
        folders = make_folders(folder)
        try:
            temporary = folder / f".dmlconf.{getpid()}.tmp"
            temporary.write_bytes(b"")
            temporary.unlink()
        finally:
            remove_folders(folders)
    except OSError as error:
        message = printable(f"{option} {folder}: {error.strerror or error}")
        raise click.UsageError(message) from error
