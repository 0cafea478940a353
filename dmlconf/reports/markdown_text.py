"""Markdown that reports share: tables, lists, code, and the escaping of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dmlconf.documents.problems import printable

__all__ = ["cell", "code", "escaped", "fenced", "items", "one_line", "prose", "row", "table"]

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$=]|^-|(?<=\d)\.(?=\s|$))")
"""Signs of Markdown; `-` only at the beginning, `.` only after a digit and before a blank or the
end."""


def one_line(text: str) -> str:
    """Return text from outside dmlconf on one line, with unprintable characters escaped."""
    return printable(" ".join(text.split()))


def escaped(text: str) -> str:
    r"""Return text from outside dmlconf on one line, with signs of Markdown escaped: `a\_b`."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def prose(text: str) -> str:
    r"""Return dmlconf's own prose for a line or a cell of a table, with signs of Markdown escaped.

    Signs that matter only at the beginning of a line, such as `#`, are not escaped. `<` becomes
    `&lt;`, since Python-Markdown, which makes the documentation site, would show the `\` of `\<`.
    """
    for sign in "\\`*_[]":
        text = text.replace(sign, f"\\{sign}")
    return cell(text.replace("&", "&amp;").replace("<", "&lt;"))


def cell(markdown: str) -> str:
    """Return dmlconf's own Markdown for a cell of a table, with bars escaped."""
    return markdown.replace("|", "&#124;")


def code(text: str) -> str:
    """Return text as code within a line.

    Backticks become apostrophes, and unprintable characters are escaped.
    """
    return f"`{printable(text).replace('`', chr(39))}`"


def fenced(lines: Sequence[str], language: str) -> Iterator[str]:
    """Yield lines, with unprintable characters escaped, as a block of code, and an empty line.

    The fences have more backticks than any line has in a row.
    """
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from map(printable, lines)
    yield fence
    yield ""


def items(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines from outside dmlconf as the items of a list."""
    yield from (f"- {escaped(line)}" for line in lines)


def row(cells: Iterable[str]) -> str:
    """Return a row of a table; the cells are Markdown."""
    return f"| {' | '.join(cells)} |"


def table(
    headings: Sequence[str], rows: Iterable[Iterable[str]], align: str = "l"
) -> Iterator[str]:
    """Yield a table whose cells are Markdown.

    Args:
        align: `l` or `r` for each column; the last letter also holds for further columns.
    """
    sides = align.ljust(len(headings), align[-1])
    yield row(headings)
    yield f"|{'|'.join('---:' if side == 'r' else '---' for side in sides)}|"
    yield from map(row, rows)
