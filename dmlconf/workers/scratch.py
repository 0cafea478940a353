"""The temporary folder of a run, and the removal of those left by dead runs.

Each folder has a lock file next to it, which its run creates and locks first and holds for as long
as it lives. The operating system releases the lock however the run ends, so a folder whose lock is
free belongs to a dead run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from dmlconf.workers.locks import FileLock, LockedError

__all__ = ["ScratchFolder", "remove_abandoned", "temporary_folder"]

_PREFIX: Final = "dmlconf-"
_LOCK: Final = ".lock"

_SHARED_MEMORY: Final = Path("/dev/shm")
"""A file system in memory, which containers have where everything else is read-only."""


def temporary_folder() -> Path:
    """Return the folder for temporary files, that of shared memory if no other can be written.

    Raises:
        OSError: there is none.
    """
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
            return _SHARED_MEMORY
        raise


class ScratchFolder:
    """A new temporary folder. Use as a context manager; leaving it removes the folder."""

    def __init__(self) -> None:
        """Create the folder, after removing those of dead runs.

        Raises:
            OSError: it cannot be created, or its file system has no locks.
        """
        remove_abandoned()
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_LOCK, dir=temporary_folder())
        os.close(descriptor)
        self._lock_file = Path(name)
        self.path = self._lock_file.with_suffix("")
        try:
            self._lock = FileLock(self._lock_file)
        except OSError:
            self._lock_file.unlink(missing_ok=True)
            raise
        try:
            self.path.mkdir(mode=0o700)
        except OSError:
            _give_up(self._lock, self._lock_file)
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        _give_up(self._lock, self._lock_file)


def remove_abandoned() -> None:
    """Remove the temporary folders of this user's runs that died without removing them."""
    with suppress(OSError):
        for folder in temporary_folder().glob(f"{_PREFIX}*"):
            lock_file = folder.with_name(folder.name + _LOCK)
            if folder.is_symlink() or not folder.is_dir() or not lock_file.is_file():
                continue
            if not (_own(folder) and _own(lock_file)):
                continue
            with suppress(LockedError, OSError):
                lock = FileLock(lock_file)
                shutil.rmtree(folder, ignore_errors=True)
                _give_up(lock, lock_file)


def _give_up(lock: FileLock, lock_file: Path) -> None:
    """Release a lock and remove its file; Windows does not remove a file that is open."""
    lock.release()
    with suppress(OSError):
        lock_file.unlink()


def _own(folder: Path) -> bool:
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
