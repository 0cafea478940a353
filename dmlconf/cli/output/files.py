"""Replace files atomically."""

from __future__ import annotations

from os import getpid
from pathlib import Path

import click

from dmlconf.cli.output.preflight import require_replaceable
from dmlconf.documents.problems import ExpectedError, printable

__all__ = ["OutputError", "replaced", "require_folder"]


class OutputError(ExpectedError):
    """A result cannot be written although all that it says is known, as on a full disk."""


def replaced(
    path: Path, content: bytes | None, option: str = "-o", *, own: str | None = None
) -> None:
    """Replace a file atomically; without content, only check that this is possible.

    Args:
        path: the file.
        content: what it is to hold.
        option: what names it, for messages.
        own: what is written, as `recognised` names it.

    Raises:
        click.UsageError: it is not possible, before there is any content, or the file is one that
            nobody wants overwritten.
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
    """Check that a folder can be written or made, before anything is known to write there.

    Args:
        folder: the folder; it is not made.
        option: what names it, for messages.

    Raises:
        click.UsageError: it cannot.
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
