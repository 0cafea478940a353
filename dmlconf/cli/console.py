"""Consoles for standard output and standard error, as `--color` asks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["make_console"]


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
