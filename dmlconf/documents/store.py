"""A folder that keeps what is costly to compute again, as JSON under a digest.

Nothing in it is trusted more than a file of the user's own: a folder or an entry that another user
may have written is not used, an entry that is damaged is ignored and written again, and JSON holds
nothing that executes. A folder that cannot be used only costs time.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

from dmlconf.documents.files import UnreadableFileError, open_regular

__all__ = [
    "DIGEST_BYTES",
    "LARGEST_ENTRY",
    "MOST_BYTES",
    "Entries",
    "Store",
    "entry_content",
    "entry_value",
]

MOST_BYTES: Final = 1 << 26
"""Bytes of all entries of a folder; beyond them the oldest are removed."""

LARGEST_ENTRY: Final = 1 << 22
"""Bytes of one entry; larger ones are not kept."""

_SUFFIX: Final = ".json"
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

DIGEST_BYTES: Final = 65
"""Bytes of an entry before its JSON: its digest in hexadecimal, and a line end."""


class Entries(Protocol):
    """What is kept under keys, of letters and digits."""

    def get(self, key: str) -> Any:
        """Return what is kept under a key; None where nothing is, or it cannot be used."""

    def put(self, key: str, value: Any) -> None:
        """Keep a value under a key; nothing where that fails."""

    def prune(self) -> None:
        """Remove what is too much."""


def entry_content(value: Any) -> bytes | None:
    """Return an entry with a value: the digest of its JSON, a line end, its JSON.

    Returns:
        None for one that is larger than `LARGEST_ENTRY`.
    """
    content = json.dumps(value, separators=(",", ":")).encode()
    if len(content) > LARGEST_ENTRY:
        return None
    return sha256(content).hexdigest().encode() + b"\n" + content


def entry_value(entry: bytes) -> Any:
    """Return the value of an entry.

    Raises:
        ValueError: the entry is damaged.
    """
    digest, _, content = entry.partition(b"\n")
    if sha256(content).hexdigest().encode() != digest:
        raise ValueError("the digest is another one")
    return json.loads(content)


class Store:
    """Entries by key, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when the first entry is kept.

        Args:
            folder: of this user alone.
        """
        self.folder = folder
        self._usable: bool | None = None

    def get(self, key: str) -> Any:
        """Return what is kept under a key; None where nothing is, or it cannot be used.

        Args:
            key: letters and digits.
        """
        if not self._is_usable():
            return None
        try:
            with open_regular(self._file(key)) as stream:
                status = os.fstat(stream.fileno())
                if not _is_own(status) or status.st_size > LARGEST_ENTRY + DIGEST_BYTES:
                    return None
                return entry_value(stream.read())
        except (OSError, UnreadableFileError, ValueError, RecursionError, MemoryError):
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep a value under a key, in place of what was kept there; nothing where that fails.

        Args:
            key: letters and digits.
            value: of what JSON has.
        """
        content = entry_content(value)
        if content is None:
            return
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._usable = None
            if not self._is_usable():
                return
            # A reader sees the old entry or the new one, and never a part of one.
            handle, name = tempfile.mkstemp(dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                Path(name).replace(self._file(key))
            except OSError:
                Path(name).unlink(missing_ok=True)

    def prune(self, most_bytes: int = MOST_BYTES) -> None:
        """Remove the oldest entries until the others have so many bytes."""
        with suppress(OSError):
            if not self._is_usable():
                return
            files = [(path.stat(), path) for path in self.folder.iterdir() if path.is_file()]
            excess = sum(status.st_size for status, _ in files) - most_bytes
            for status, path in sorted(files, key=lambda entry: entry[0].st_mtime_ns):
                if excess <= 0:
                    break
                path.unlink(missing_ok=True)
                excess -= status.st_size

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _is_usable(self) -> bool:
        """Tell whether the folder is there, is no link, and only this user can write to it."""
        if self._usable is None:
            try:
                status = self.folder.lstat()
                self._usable = stat.S_ISDIR(status.st_mode) and _is_own(status)
            except (OSError, ValueError):
                self._usable = False
        return self._usable


def _is_own(status: os.stat_result) -> bool:
    """Tell whether this user owns a file or folder and no other can write to it.

    On Windows the user's folders have access lists of their own, which the mode does not tell.
    """
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS
