"""Consoles for standard output and standard error, as `--color` asks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dmlconf.documents.problems import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["make_console", "warn"]


def make_console(color: str, *, stderr: bool = False) -> Console:
    """Return a console.

    Args:
        color: `auto`, `always` or `never`; `auto` uses colour on a terminal unless NO_COLOR is set.
        stderr: whether it writes to standard error.
    """
    from rich.console import Console

    options: dict[str, Any] = {}
    if color == "always":
        options = {"force_terminal": True, "no_color": False, "color_system": "256"}
    elif color == "never":
        options = {"no_color": True, "color_system": None}
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=False, **options)


def warn(message: str | None) -> None:
    """Write a warning to standard error, if there is one."""
    if message is not None:
        for line in f"Warning: {message}".split("\n"):
            click.echo(printable(line), err=True)
