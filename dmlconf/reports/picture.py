"""The terminal report as plain text and as an SVG picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from dmlconf.reports import terminal
from dmlconf.runner.log import RunLog

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_svg", "render_text"]

WIDTH: Final = 100


def render_text(log: RunLog) -> str:
    """Return the terminal report in full (`-v`) as text for 100 columns, without colour.

    Only locations and commands may be longer, so that they can be copied.
    """
    return _printed(log, verbose=True)


def _printed(log: RunLog, *, verbose: bool) -> str:
    stream = io.StringIO()
    console = _console(WIDTH, file=stream, color_system=None)
    console.print(terminal.render(log, verbose=verbose), crop=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


def render_svg(log: RunLog) -> str:
    """Return the terminal report as an SVG picture; the same log gives the same picture."""
    from rich.cells import cell_len

    # A picture cuts off longer lines, so it is as wide as the longest.
    width = max(WIDTH, *map(cell_len, _printed(log, verbose=False).split("\n")))
    console = _console(
        width, file=io.StringIO(), color_system="truecolor", force_terminal=True, record=True
    )
    console.print(terminal.render(log))
    return console.export_svg(title="dmlconf run", unique_id="dmlconf")


def _console(width: int, **options: Any) -> Console:
    """Return a console that does not depend on the terminal and environment it runs in."""
    from rich.console import Console

    return Console(
        width=width, height=25, highlight=False, legacy_windows=False,
        force_jupyter=False, **options,
    )  # fmt: skip
