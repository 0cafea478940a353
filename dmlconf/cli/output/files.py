"""Replace files atomically, and check beforehand that files and folders can be written."""

from __future__ import annotations

from os import getpid
from pathlib import Path

import click

from dmlconf.cli.output.preflight import require_replaceable
from dmlconf.documents.problems import ExpectedError, printable

__all__ = ["OutputError", "replaced", "require_folder"]


class OutputError(ExpectedError):
    """A result that is complete cannot be written, as on a full disk."""


def replaced(
    path: Path, content: bytes | None, option: str = "-o", *, own: str | None = None
) -> None:
    """Replace a file atomically; without content, only check that this is possible.

    Args:
        path: the file.
        content: the new content; None to check only.
        option: the option that names the file, for messages.
        own: the kind of file that is written, as `recognised` names it.

    Raises:
        click.UsageError: the check found that the file cannot be written, or the file is of another
            kind that nobody wants overwritten, such as a case file.
        OutputError: the content could not be written.
    """
    require_replaceable(f"{option} {path}", path, own)
    temporary = path.with_name(f".{path.name}.{getpid()}.tmp")
    try:
        try:
            temporary.write_bytes(content or b"")
            if content is not None:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        message = printable(f"{option} {path}: {error.strerror or error}")
        if content is None:
            raise click.UsageError(message) from error
        raise OutputError(message) from error


def require_folder(folder: Path, option: str = "-o") -> None:
    """Check, before there is a result, that a folder can be created and files written there.

    Args:
        folder: the folder, which is not created.
        option: the option that names the folder, for messages.

    Raises:
        click.UsageError: the folder cannot be created or written to.
    """
    temporary: Path | None = None
    try:
        existing = folder
        while not existing.exists():
            existing = existing.parent
        temporary = existing / f".dmlconf.{getpid()}.tmp"
        temporary.write_bytes(b"")
        temporary.unlink()
    except OSError as error:
        message = printable(f"{option} {folder}: {error.strerror or error}")
        raise click.UsageError(message) from error
