"""The terminal report of `runs.terminal` as plain text and as an SVG picture."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dmlconf.reports.runs import terminal
from dmlconf.run_log.log import RunLog

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

__all__ = ["render_svg", "render_text"]

WIDTH: Final = 100
"""The width of the plain text, in columns."""

PICTURE_WIDTH: Final = 80

_INDENT: Final = "    "
"""Begins each part but the first of a line that is too long for the picture."""

_SVG: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "Cascadia Mono", Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's template for SVG without its font, which a browser would load from another host."""


def render_text(log: RunLog) -> str:
    """Return the terminal report in full (`-v`) as text for 100 columns, without colour.

    Lines to be copied, such as commands, may be longer.
    """
    stream = io.StringIO()
    console = _console(WIDTH, file=stream, color_system=None)
    console.print(terminal.render(log, verbose=True), crop=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


def render_svg(log: RunLog) -> str:
    """Return the terminal report as an SVG picture, which folds lines longer than 80 columns."""
    from rich.segment import Segment, SegmentLines

    console = _console(
        PICTURE_WIDTH,
        file=io.StringIO(),
        color_system="truecolor",
        force_terminal=True,
        record=True,
    )
    lines = Segment.split_lines(console.render(terminal.render(log)))
    folded = [part for line in lines for part in _folded(line)]
    console.print(SegmentLines(folded, new_lines=True))
    return console.export_svg(title="dmlconf run", unique_id="dmlconf", code_format=_SVG)


def _folded(line: list[Segment]) -> Iterator[list[Segment]]:
    """Yield the line in parts no wider than the picture.

    Breaks come after a blank, a comma or a slash in the second half of a part, if it has one.
    """
    from rich.cells import cell_len
    from rich.segment import Segment

    room = PICTURE_WIDTH
    indent: list[Segment] = []
    while True:
        text = "".join(segment.text for segment in line).rstrip()
        if cell_len(text) <= room:
            yield [*indent, *line]
            return
        end = room
        while cell_len(text[:end]) > room:
            end -= 1
        # A break in the first half would leave most of the line empty.
        best = max((text.rfind(sign, end // 2, end) + 1 for sign in " ,/"), default=0)
        end = best or end
        first, line = Segment.divide(line, [cell_len(text[:end]), cell_len(text) + 1])
        yield [*indent, *first]
        indent = [Segment(_INDENT)]
        room = PICTURE_WIDTH - len(_INDENT)


def _console(width: int, **options: Any) -> Console:
    """Return a console that depends neither on the terminal nor on the environment."""
    from rich.console import Console

    return Console(
        width=width,
        height=25,
        highlight=False,
        legacy_windows=False,
        force_jupyter=False,
        **options,
    )
