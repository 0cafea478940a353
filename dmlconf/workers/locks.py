"""File locks, which the operating system releases when the process that holds them ends."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["FileLock", "LockedError"]

_BYTE: Final = 1 << 40
"""Offset of the byte that Windows locks, beyond the end of the file, which stays readable."""

_HELD: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
"""The error numbers of a lock that is held already."""


class LockedError(Exception):
    """Another `FileLock`, of this or another process, holds the lock."""


class FileLock:
    """A lock on a file, which is held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock; the file is created if necessary.

        Raises:
            LockedError: another `FileLock`, of this or another process, holds the lock.
            OSError: the file cannot be opened for writing, or its file system has no locks.
        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno not in _HELD:
                raise
            raise LockedError(f"{path} is in use, by another process or by this one") from error

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
