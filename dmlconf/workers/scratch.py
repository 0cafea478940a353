"""Create the temporary folder of a run, and remove folders that dead runs have left.

Each folder has a lock file next to it, which the run keeps locked until it ends. A folder whose
lock file is not locked belongs to a dead run.
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
"""A file system in memory, which read-only containers can write."""


def temporary_folder() -> Path:
    """Return the system's folder for temporary files, or else `_SHARED_MEMORY`.

    Raises:
        OSError: neither can be written.
    """
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
            return _SHARED_MEMORY
        raise


class ScratchFolder:
    """A new temporary folder; a `with` statement removes it at the end."""

    def __init__(self) -> None:
        """Remove the folders of dead runs, and create the folder.

        Raises:
            OSError: the folder cannot be created, or its file system has no locks.
        """
        remove_abandoned()
        lock_file, self._lock = _locked_file()
        self.path = lock_file.with_suffix("")
        try:
            self.path.mkdir(mode=0o700)
        except OSError:
            self._lock.remove()
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.remove()


def _locked_file() -> tuple[Path, FileLock]:
    """Create and lock a file; try another if a new run locks it first, to remove it."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_LOCK, dir=temporary_folder())
        os.close(descriptor)
        file = Path(name)
        try:
            return file, FileLock(file)
        except LockedError:
            continue
        except OSError:
            file.unlink(missing_ok=True)
            raise


def remove_abandoned() -> None:
    """Remove the folders and lock files of this user's dead runs."""
    with suppress(OSError):
        for lock_file in temporary_folder().glob(f"{_PREFIX}*{_LOCK}"):
            folder = lock_file.with_suffix("")
            if lock_file.is_symlink() or not lock_file.is_file() or folder.is_symlink():
                continue
            if not _own(lock_file) or (folder.exists() and not (folder.is_dir() and _own(folder))):
                continue
            with suppress(LockedError, OSError):
                lock = FileLock(lock_file)
                shutil.rmtree(folder, ignore_errors=True)
                lock.remove()


def _own(folder: Path) -> bool:
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
