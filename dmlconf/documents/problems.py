"""Problems in files, shown with their location, source line and a hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["ExpectedError", "InvalidFilesError", "Problem", "name_hint", "nearest", "printable"]

_LONGEST_EXCERPT: Final = 100
"""The most characters of a source line that are shown."""


def printable(text: str) -> str:
    """Escape unprintable characters, since some could move a terminal's cursor."""
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, or None if none is similar."""
    import difflib  # Slow to import.

    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def name_hint(
    name: object, known: Iterable[str], otherwise: str | None = None, *, mark: str = ""
) -> str:
    """Return a hint for an unknown name, such as `did you mean GEMM?`.

    Args:
        otherwise: the hint if no name is similar; by default a list such as `one of GEMM, GRU`.
        mark: what encloses the name, such as a backquote for a field of a file.
    """
    names = list(known)
    near = nearest(str(name), names)
    if near is not None:
        return f"did you mean {mark}{near}{mark}?"
    return f"one of {', '.join(names)}" if otherwise is None else otherwise


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a file.

    Attributes:
        message: what was found and what was expected.
        line: from 1; 0 if unknown, as for the whole file.
        column: from 1, in characters; 0 if the line is unknown.
        source: the text of the line.
        width: the most columns of the printed line to underline.
    """

    path: Path
    message: str
    line: int = 0
    column: int = 0
    source: str = ""
    width: int = 1
    hint: str | None = None

    def __str__(self) -> str:
        location = f"{self.path}:{self.line}:{self.column}" if self.line else f"{self.path}"
        rows = [f"{printable(location)}: {printable(self.message)}"]
        if self.line:
            rows += self._excerpt()
        if self.hint:
            rows.append(f"    hint: {printable(self.hint)}")
        return "\n".join(rows)

    def _excerpt(self) -> list[str]:
        cut = len(self.source) > _LONGEST_EXCERPT
        start = max(0, self.column - 1 - _LONGEST_EXCERPT // 2) if cut else 0
        before = printable(self.source[start : self.column - 1])
        rest = printable(self.source[self.column - 1 : start + _LONGEST_EXCERPT])
        width = max(1, min(self.width, len(rest)))
        margin = f"{self.line:>6} | "
        return [margin + before + rest, " " * 6 + " | " + " " * len(before) + "^" * width]


class ExpectedError(Exception):
    """An error that the user can fix; its text says what is wrong.

    `dmlconf.cli.common.exit_codes` has the exit code of each kind.
    """


class InvalidFilesError(ExpectedError):
    """Files that cannot be used, with every problem found in them, each once.

    What several entries have by an alias would have the same problem several times.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)
