"""Consoles for standard output and standard error, as `--color` asks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from dmlconf.documents.problems import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["make_console", "output_fault", "say", "silenced_when_closed", "warn"]

_WRITERS: Final = frozenset({"click.utils", "rich.console", __name__})
"""Modules that write to standard output; those that write files are others."""


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
        _discard()


def output_fault(error: Exception) -> str | None:
    """Say why standard output could not be written; None for an error of anything else.

    What was to be written is lost.
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if not isinstance(error, OSError) or place is None:
        return None
    if place.tb_frame.f_globals.get("__name__") not in _WRITERS:
        return None
    _discard()
    return f"standard output could not be written: {error.strerror or error}"


def _discard() -> None:
    """Have what is still buffered go nowhere, so that Python does not complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
