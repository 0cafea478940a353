"""The terminal report as plain text and as an SVG picture."""

from __future__ import annotations

import io
from typing import Final

from dmlconf.reports import terminal
from dmlconf.runner.log import RunLog

__all__ = ["render_svg", "render_text"]

WIDTH: Final = 100


def render_text(log: RunLog) -> str:
    """Return the terminal report as text of at most 100 columns, without colour."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None, highlight=False)
    console.print(terminal.render(log))
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


def render_svg(log: RunLog) -> str:
    """Return the terminal report as an SVG picture; the same log gives the same picture."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=WIDTH, record=True, force_terminal=True, highlight=False,
        color_system="truecolor",
    )  # fmt: skip
    console.print(terminal.render(log))
    return console.export_svg(title="dmlconf run", unique_id="dmlconf")
