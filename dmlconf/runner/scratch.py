"""The temporary folder of a run, and the removal of those that dead runs left behind.

A run holds a lock on a file in its folder for as long as it lives. The operating system releases
the lock however the run ends, so a folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from dmlconf.runner.locks import FileLock, LockedError

__all__ = ["ScratchFolder", "remove_abandoned"]

_PREFIX: Final = "dmlconf-"
_LOCK: Final = "in-use.lock"


class ScratchFolder:
    """A new temporary folder. Use as a context manager; leaving it removes the folder."""

    def __init__(self) -> None:
        """Make the folder, after removing those of dead runs.

        Raises:
            OSError: it cannot be made.
        """
        remove_abandoned()
        self.path, self._lock = _locked_folder()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.remove()

    def remove(self) -> None:
        """Remove the folder and all that it holds."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)


def _locked_folder() -> tuple[Path, FileLock]:
    """Return a new folder with its lock.

    A run that starts at the same time may take a folder that is not locked yet for a dead run's.

    Raises:
        OSError: no folder can be made.
    """
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            lock = FileLock(path / _LOCK)
        except (LockedError, FileNotFoundError):
            continue
        if (path / _LOCK).exists():
            return path, lock
        lock.release()


def remove_abandoned() -> None:
    """Remove the temporary folders of this user's runs that died without removing them."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            lock = folder / _LOCK
            if not lock.is_file() or folder.is_symlink() or not _own(folder):
                continue
            try:
                held = FileLock(lock)
            except (LockedError, OSError):
                continue
            # Held, so that a run that is about to lock its new folder sees that it goes.
            shutil.rmtree(folder, ignore_errors=True)
            held.release()
            # Windows keeps a file that is open.
            shutil.rmtree(folder, ignore_errors=True)


def _own(folder: Path) -> bool:
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
