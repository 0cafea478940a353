"""Replace files atomically."""

from __future__ import annotations

from os import getpid
from pathlib import Path

import click

from dmlconf.documents.problems import printable

__all__ = ["replaced"]


def replaced(path: Path, content: bytes | None, option: str = "-o") -> None:
    """Replace a file atomically; without content, only check that this is possible.

    Raises:
        click.UsageError: it is not.
    """
    temporary = path.with_name(f".{path.name}.{getpid()}.tmp")
    try:
        try:
            temporary.write_bytes(content or b"")
            if content is not None:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise click.UsageError(printable(f"{option} {path}: {error.strerror or error}")) from error
