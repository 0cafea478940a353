"""Start processes that ignore Ctrl-C, and start them even if the working folder was deleted.

A terminal sends Ctrl-C to all processes of a command, but only the main process should act on it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = [
    "INTERRUPTS",
    "children_ignore_interrupts",
    "existing_working_folder",
    "ignore_interrupts",
]

INTERRUPTS: Final = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
)
"""The signals of this platform that ask a program to end."""


@contextmanager
def children_ignore_interrupts() -> Iterator[None]:
    """Let processes that start in the block get no interrupts, from their first instruction.

    This thread blocks the signals in `INTERRUPTS`. The new processes inherit that, and must call
    `ignore_interrupts`. Windows cannot block signals: there, this process ignores Ctrl-C in the
    block, and the new processes inherit that.
    """
    if sys.platform == "win32":
        with _ignored_ctrl_c():
            yield
        return
    from multiprocessing import resource_tracker  # Takes a while to import.

    # Starting the tracker later would unblock SIGINT and SIGTERM in this thread.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C, and unblock all signals.

    A SIGTERM or SIGHUP that came while it was blocked then ends the process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


@contextmanager
def existing_working_folder() -> Iterator[None]:
    """Change to the root folder within the block if the working folder was deleted.

    To start a process, Python asks for the working folder's name, and a deleted folder has none.
    """
    try:
        os.getcwd()  # noqa: PTH109  # Raises an error if the folder has no name.
    except FileNotFoundError:
        deleted = os.open(".", os.O_RDONLY)
        os.chdir("/")
        try:
            yield
        finally:
            os.fchdir(deleted)
            os.close(deleted)
    else:
        yield


if sys.platform == "win32":
    import ctypes

    @contextmanager
    def _ignored_ctrl_c() -> Iterator[None]:
        """Ignore Ctrl-C in the block, and in processes that start in it.

        Source: SetConsoleCtrlHandler: TRUE without a handler causes the process to ignore CTRL+C
        input, and child processes inherit this.
        """
        kernel = ctypes.WinDLL("kernel32")
        before = _ignores_ctrl_c()  # True for a program that `start /b` started.
        kernel.SetConsoleCtrlHandler(None, 1)
        try:
            yield
        finally:
            kernel.SetConsoleCtrlHandler(None, int(before))

    def _ignores_ctrl_c() -> bool:
        """Return whether this process ignores Ctrl-C, for which Windows has no function.

        Source: PEB.ProcessParameters and RTL_USER_PROCESS_PARAMETERS.ConsoleFlags, in ntpebteb.h
        and ntrtl.h of System Informer.
        """
        word = ctypes.sizeof(ctypes.c_void_p)
        current = ctypes.WinDLL("ntdll").RtlGetCurrentPeb
        current.restype = ctypes.c_void_p
        parameters = ctypes.c_void_p.from_address(current() + 4 * word).value
        assert parameters is not None
        return bool(ctypes.c_uint32.from_address(parameters + 16 + word).value & 1)
