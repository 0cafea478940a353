"""Keep results that take long to compute, in a folder, as JSON with a digest.

Folders and entries that another user owns or may write to are not used. On Windows, this is not
checked. Damaged entries are ignored.
"""

from __future__ import annotations

import json
import os
import stat
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
    "is_own_folder",
]

MOST_BYTES: Final = 1 << 26
"""The most bytes of all entries that `Store.prune` leaves by default."""

LARGEST_ENTRY: Final = 1 << 22
"""The most bytes of the JSON of one entry."""

_SUFFIX: Final = ".json"
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

DIGEST_BYTES: Final = 65
"""Bytes of an entry before its JSON: its digest in hexadecimal, and a line end."""


class Entries(Protocol):
    """Values stored under keys of letters and digits."""

    def get(self, key: str) -> Any:
        """Return the value of a key; None if there is none, or it cannot be used."""

    def put(self, key: str, value: Any) -> bool:
        """Store a value under a key if possible; return False if the value is too large."""

    def prune(self) -> None:
        """Remove entries beyond the limits."""


def entry_content(value: Any) -> bytes | None:
    """Return the digest of a value's JSON, a line end and the JSON; None if that is too large."""
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
        raise ValueError("the digest does not match")
    return json.loads(content)


class Store:
    """Entries by key, each in its own file.

    Attributes:
        folder: used only if `is_own_folder` is true of it.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._usable: bool | None = None

    def get(self, key: str) -> Any:
        """Return the value of a key; None if there is none, or it cannot be used."""
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

    def put(self, key: str, value: Any) -> bool:
        """Store a JSON value under a key, replacing the old one; do nothing if that fails.

        Returns:
            False if the value is larger than `LARGEST_ENTRY`; the old one then stays.
        """
        content = entry_content(value)
        if content is None:
            return False
        import tempfile

        with suppress(OSError):
            _make_own_folder(self.folder)
            self._usable = None
            if not self._is_usable():
                return True
            # A reader sees the old entry or the new one, never part of one.
            handle, name = tempfile.mkstemp(dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                Path(name).replace(self._file(key))
            except OSError:
                Path(name).unlink(missing_ok=True)
        return True

    def prune(self, most_bytes: int | None = None) -> None:
        """Remove the oldest entries until at most `most_bytes` are left; None for the default."""
        if not self._is_usable():
            return
        files: list[tuple[os.stat_result, Path]] = []
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(FileNotFoundError):  # Another process has removed or moved it.
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):
                        files.append((status, path))
        excess = sum(status.st_size for status, _ in files)
        excess -= self._most_bytes if most_bytes is None else most_bytes
        for status, path in sorted(files, key=lambda entry: entry[0].st_mtime_ns):
            if excess <= 0:
                break
            with suppress(OSError):  # Another process reads it on Windows.
                path.unlink(missing_ok=True)
                excess -= status.st_size

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _is_usable(self) -> bool:
        if self._usable is None:
            self._usable = is_own_folder(self.folder)
        return self._usable


def _make_own_folder(path: Path) -> None:
    """Make a folder and missing folders above it, for this user alone."""
    if not path.parent.exists():
        _make_own_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def is_own_folder(path: Path) -> bool:
    """Return whether a path is a folder, not a link, that this user owns and no other may write to.

    On Windows, permissions are not checked.
    """
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and _is_own(status)


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS
