"""File locks, which the operating system releases when the process that holds them ends."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["FileLock", "LockedError"]

_BYTE: Final = 1 << 40
"""Offset of the byte that Windows locks, beyond the end of the file, which stays readable."""

_MOST_OPENINGS: Final = 100
"""How often a file is opened that seems to be removed at once; some network file systems give a
file another number each time.
"""

_HELD: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, 0})
"""The error numbers of a lock that is held already; Wine gives 0."""


class LockedError(Exception):
    """Another `FileLock`, of this or another process, holds the lock."""


class FileLock:
    """A lock on a file, held until `release`, `remove`, `replace_by` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock; the file is created if necessary.

        Raises:
            LockedError: another `FileLock`, of this or another process, holds the lock.
            OSError: the file cannot be opened for writing, or its file system has no locks.
        """
        self._path = path
        for left in reversed(range(_MOST_OPENINGS)):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(self._descriptor)
            except OSError as error:
                os.close(self._descriptor)
                if error.errno not in _HELD:
                    raise
                raise LockedError(f"{path} is in use, by another process or by this one") from error
            if _is_at(self._descriptor, path) or not left:
                return
            # Its last holder removed the file after it was opened here.
            os.close(self._descriptor)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Remove the file, if possible, and release the lock.

        Nobody else holds the lock of a file that this removes.
        """
        _remove(self._descriptor, self._path)

    def replace_by(self, other: Path) -> None:
        """Move another file to the path of this one, and release the lock.

        On POSIX, nobody else holds the lock of a file that this replaces.

        Raises:
            OSError: the file cannot be replaced.
        """
        _replace(self._descriptor, other, self._path)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _is_at(descriptor: int, path: Path) -> bool:
        # An open file is not removed.
        return True

    def _remove(descriptor: int, path: Path) -> None:
        # The file is not removed while this or another process has it open.
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()

    def _replace(descriptor: int, other: Path, path: Path) -> None:
        # The file is not replaced while this or another process has it open.
        os.close(descriptor)
        other.replace(path)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_at(descriptor: int, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), path.stat())
        except OSError:
            return False

    def _remove(descriptor: int, path: Path) -> None:
        # Another process may take the lock as soon as it is released.
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)

    def _replace(descriptor: int, other: Path, path: Path) -> None:
        try:
            other.replace(path)
        finally:
            os.close(descriptor)
