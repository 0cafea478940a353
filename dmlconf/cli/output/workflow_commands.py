"""Keep the runner of GitHub Actions from obeying printed text.

The runner obeys each line that begins with `::`, also after spaces, or contains `##[`. Text of a
driver, a plugin or a worker may have such a line.

Source: Workflow commands for GitHub Actions, GitHub Docs; ActionCommand.cs of actions/runner.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Final, TextIO

__all__ = ["Disarmed", "disarm_workflow_commands"]

_APART: Final = "\u200b"
"""A zero-width space, which nobody sees and no command contains."""

_LINE_ENDS: Final = re.compile("([\r\n])")
_COMMANDS: Final = re.compile(r"##(?=\[)|^\s*:(?=:)")
"""The part of a command after which a zero-width space breaks the command."""


def disarm_workflow_commands() -> None:
    """In GitHub Actions, keep printed text from being obeyed.

    Bytes written to the streams' buffers, such as dmlconf's own annotations, stay commands.
    """
    if not os.environ.get("GITHUB_ACTIONS"):
        return
    for name in ("stdout", "stderr"):
        stream: TextIO = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and not isinstance(stream, Disarmed):
            stream.flush()
            setattr(sys, name, Disarmed(stream))


class Disarmed(TextIOWrapper):
    """A stream that writes to another one's buffer, with a zero-width space in each command."""

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        self._owner = stream  # A stream that is destroyed closes its buffer.
        self._line = ""

    def close(self) -> None:
        """Flush; the buffer belongs to the other stream."""
        with suppress(OSError, ValueError):
            self.flush()

    def write(self, text: str) -> int:
        """Write text; a command may begin in one call and end in the next."""
        super().write("".join(map(self._disarmed, _LINE_ENDS.split(text))))
        return len(text)

    def _disarmed(self, part: str) -> str:
        """Return a part of a line, with a zero-width space in each command that it completes."""
        if part in ("\r", "\n"):
            self._line = ""
            return part
        written, line = len(self._line), self._line + part
        ends = [match.end() for match in _COMMANDS.finditer(line) if match.end() >= written]
        for end in reversed(ends):
            part = part[: end - written] + _APART + part[end - written :]
        # Once a line has begun with other text, only its last two characters matter, for `##[`.
        begun = line.lstrip()
        self._line = begun if begun in ("", ":") else f"-{line[-2:]}"
        return part
