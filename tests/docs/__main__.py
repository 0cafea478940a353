"""Write the pages that are made from the program: `python -m tests.docs [PAGE]...`."""

from __future__ import annotations

import click

from tests.docs.pages import PAGES, write
from tests.docs.tutorials import LAB_TUTORIALS, TUTORIALS

__all__ = ["command"]

_TUTORIALS = [path.name for path in TUTORIALS]
_LAB_TUTORIALS = [path.name for path in LAB_TUTORIALS]

_HELP = f"""Write pages of docs/ anew: those named, or all.

From the program, in seconds: {", ".join(PAGES)}.

Tutorials, by running their commands, in minutes: {", ".join(_TUTORIALS)}.

In the Wine lab, and only if named: {", ".join(_LAB_TUTORIALS)}.
"""


@click.command(help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "names",
    nargs=-1,
    metavar="[PAGE]...",
    type=click.Choice([*PAGES, *_TUTORIALS, *_LAB_TUTORIALS]),
)
def command(names: tuple[str, ...]) -> None:
    write(names or (*PAGES, *_TUTORIALS))


if __name__ == "__main__":
    command(prog_name="python -m tests.docs")
