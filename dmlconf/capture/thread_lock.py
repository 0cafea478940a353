"""A lock between threads, which is free in a child that another thread forks while it is held."""

from __future__ import annotations

import os
from threading import Lock
from typing import Final
from weakref import WeakSet

__all__ = ["ThreadLock"]


class ThreadLock:
    """A `threading.Lock` for `with`.

    Only the thread that forks goes on in the child. Another thread's lock would be held for ever.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Make the lock free, in a child that has just been forked."""
        self._lock = Lock()


_locks: Final[WeakSet[ThreadLock]] = WeakSet()


def _renew_all() -> None:
    for lock in _locks:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
