"""Write messages and colours to standard output and standard error, which may be closed."""

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

__all__ = ["make_console", "output_error", "say", "silenced_when_closed", "warn"]

_WRITERS: Final = frozenset({"click.utils", "rich.console", __name__})
"""The modules whose errors are about standard output; those of other modules are about files."""


def make_console(color: str, *, stderr: bool = False) -> Console:
    """Return a console for standard output or standard error.

    Args:
        color: `auto`, `always` or `never`; with `auto`, only a terminal gets colour, unless
            variables such as NO_COLOR and FORCE_COLOR say otherwise.
    """
    from rich.console import Console

    class PlainConsole(Console):
        """A console that raises on a broken pipe; Rich would exit with 1."""

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
    """Write a message to standard error, line by line, with unprintable characters escaped."""
    with suppress(OSError):  # The reader may have gone.
        for line in text.split("\n"):
            click.echo(printable(line), err=True)


def warn(message: str | None) -> None:
    """Write a warning to standard error, if there is one."""
    if message is not None:
        say(f"Warning: {message}")


@contextmanager
def silenced_when_closed() -> Iterator[None]:
    """Continue after the block if the reader of standard output closed it, as `head` does.

    What is printed later is discarded.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()


def output_error(error: Exception) -> str | None:
    """Return why standard output could not be written, and discard what is printed later.

    Returns:
        None if the error is about something else; then nothing is discarded.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if not isinstance(error, OSError) or trace is None:
        return None
    if trace.tb_frame.f_globals.get("__name__") not in _WRITERS:
        return None
    _discard()
    return f"standard output could not be written: {error.strerror or error}"


def _discard() -> None:
    """Discard what is buffered or printed later; else Python complains at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
