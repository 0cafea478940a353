"""The journal: captured calls as lines of a file, which survives a crash of the program.

Each line is a JSON object. An operator or graph is described before DirectML compiles it, so that
the journal has it even if the process then ends. Later lines have its number, which is the same in
all processes of the program that write to the journal.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.capture.journal_keys import FormError, require_keys
from dmlconf.capture.thread_lock import ThreadLock
from dmlconf.documents.trees import TreeError, parsed_json
from dmlconf.limits import LARGEST_JOURNAL, LONGEST_JOURNAL_LINE

__all__ = ["JournalError", "JournalWriter", "read_journal"]

_SEPARATORS: Final = (",", ":")

_NUMBER: Final = "number"
"""The key of an object in place of a number that JSON lacks: `{"number": "-inf"}`."""


class JournalError(ValueError):
    """A file is not a journal, names a kept array wrongly, or is larger than dmlconf reads."""


class JournalWriter:
    """Writes lines; several threads, and children that the program forks, may do so at once."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("ab", buffering=0)
        self._lock = ThreadLock()
        self._full = False

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line; if it is too long, write a line `skipped` instead.

        Once a line would make the file too large, no more lines are written.

        Raises:
            OSError: the line cannot be written.
        """
        text = json.dumps(_writable(line), separators=_SEPARATORS, allow_nan=False).encode() + b"\n"
        if len(text) > LONGEST_JOURNAL_LINE:
            self.write(_missing(line, f"it takes {len(text):,} bytes to describe"))
            return
        with self._lock:
            # Not only this process may have written to the file.
            size = os.fstat(self._stream.fileno()).st_size + len(text)
            self._full = self._full or size > LARGEST_JOURNAL
            if not self._full:
                self._append(text)

    def _append(self, text: bytes) -> None:
        written = self._stream.write(text)
        if written < len(text):
            # The disk is full. A later line, for which there may be room, must not continue this.
            self._stream.truncate(os.fstat(self._stream.fileno()).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def read_journal(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a journal, without a last line that was cut off.

    Raises:
        JournalError: a line is not a JSON object or lacks what its event needs, or the file is too
            large.
        OSError: the file cannot be read.
    """
    if path.stat().st_size > LARGEST_JOURNAL:
        raise JournalError(f"{path} is larger than {LARGEST_JOURNAL:,} bytes")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return
            try:
                value = _restored(parsed_json(line))
                if not isinstance(value, dict):
                    raise FormError("it is not an object")
                require_keys(value)
            except (FormError, TreeError) as error:
                advice = "the journal is damaged, so capture the program again"
                raise JournalError(f"{path}, line {number}: {error}; {advice}") from error
            yield value


def _missing(line: Mapping[str, Any], reason: str) -> Mapping[str, Any]:
    return {"event": "skipped", "what": str(line.get("event")), "reason": reason}


def _writable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_NUMBER} and value[_NUMBER] in ("nan", "inf", "-inf"):
            return float(value[_NUMBER])
        return {key: _restored(item) for key, item in value.items()}
    return [_restored(item) for item in value] if isinstance(value, list) else value
