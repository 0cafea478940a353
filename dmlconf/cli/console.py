"""Consoles for standard output and standard error, as `--color` asks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from dmlconf.documents.problems import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["make_console", "say", "silenced_when_closed", "warn"]


def make_console(color: str, *, stderr: bool = False) -> Console:
    """Return a console.

    Args:
        color: `auto`, `always` or `never`; `auto` uses colour on a terminal unless NO_COLOR is set.
        stderr: whether it writes to standard error.
    """
    from rich.console import Console

    class PlainConsole(Console):
        """Rich's own answer to a reader that leaves is to exit with 1."""

        def on_broken_pipe(self) -> None:
            raise

    options: dict[str, Any] = {}
    if color == "always":
        options = {"force_terminal": True, "no_color": False, "color_system": "256"}
    elif color == "never":
        options = {"no_color": True, "color_system": None}
    stream = sys.stderr if stderr else sys.stdout
    return PlainConsole(file=stream, highlight=False, soft_wrap=False, **options)


def say(text: str) -> None:
    """Write a message to standard error, line by line, with nothing a terminal could obey."""
    with suppress(OSError):  # Whoever read it may have gone, which changes nothing else.
        for line in text.split("\n"):
            click.echo(printable(line), err=True)


def warn(message: str | None) -> None:
    """Write a warning to standard error, if there is one."""
    if message is not None:
        say(f"Warning: {message}")


@contextmanager
def silenced_when_closed() -> Iterator[None]:
    """Go on after the block where the reader of standard output has left, as `head` does."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered goes nowhere, so that Python does not complain at its end.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
