"""Text and tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from dmlconf.documents.problems import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["plain_table", "styled", "unwrapped"]


def plain_table(*headings: str, right: Collection[str] = ()) -> Table:
    """Return an empty table with a line below its headings; long cells are folded.

    Added cells must be printable, such as what `styled` returns.

    Args:
        right: the headings of the columns that are aligned on the right.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return table


def styled(text: str, style: str = "") -> Text:
    """Return text with unprintable characters escaped, among them line feeds."""
    from rich.text import Text

    return Text(printable(text), style)


def unwrapped(text: str, style: str = "") -> Text:
    """Return text as `styled` does, but never wrapped, so that users can copy it."""
    from rich.text import Text

    return Text(printable(text), style, no_wrap=True, overflow="ignore")
