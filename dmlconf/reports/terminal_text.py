"""Make text of reports safe to print in the terminal, wherever it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlconf.documents.problems import printable

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["styled", "unwrapped"]


def styled(text: str, style: str = "") -> Text:
    """Return text on one line, so that text from elsewhere cannot forge further lines."""
    from rich.text import Text

    return Text(printable(text), style)


def unwrapped(text: str, style: str = "") -> Text:
    """Return text that is never wrapped, so that it can be copied."""
    from rich.text import Text

    return Text(printable(text), style, no_wrap=True, overflow="ignore")
