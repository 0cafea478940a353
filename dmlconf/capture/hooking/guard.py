"""Tell the application's calls from others, and hide errors of hooks from the application."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from dmlconf.capture.journal import JournalWriter

__all__ = ["Guard"]

_MOST_FAILURES: Final = 20
"""How many failures of hooks are written to the journal."""


class Guard:
    """Marks threads that are inside `entered` or `safely`, and notes what fails in hooks."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._inside = threading.local()
        self._failures = 0

    @property
    def inside(self) -> bool:
        """Whether this thread is marked, so that its calls are not the application's."""
        return getattr(self._inside, "entered", False)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Mark that this thread calls an original function for the application."""
        before = self.inside
        self._inside.entered = True
        try:
            yield
        finally:
            self._inside.entered = before

    @contextmanager
    def safely(self) -> Iterator[None]:
        """Do a hook's own work; write an error to the journal, and do not raise it.

        An interrupt is raised later, in the main thread.
        """
        before = self.inside
        self._inside.entered = True
        try:
            yield
        except KeyboardInterrupt:
            # The application gets the interrupt after the result of the original function.
            threading.Timer(0.05, _thread.interrupt_main).start()
        except BaseException as error:
            with suppress(BaseException):
                self._failures += 1
                if self._failures <= _MOST_FAILURES:
                    reason = f"{type(error).__name__}: {error}"
                    self._journal.write({"event": "failure", "reason": reason})
        finally:
            self._inside.entered = before
