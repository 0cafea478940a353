"""Start a process with a pipe between it and this one, even if the working folder was deleted."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

__all__ = ["spawned"]


def spawned(target: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, Connection]:
    """Start a process that calls a function with one end of a pipe.

    Args:
        target: the function, of a module that the process can import.
        arguments: the arguments of the function after the end of the pipe.

    Returns:
        the daemon process, and the other end of the pipe.

    Raises:
        OSError: the system lets no process start.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process: SpawnProcess = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    try:
        with _existing_working_folder():
            process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


@contextmanager
def _existing_working_folder() -> Iterator[None]:
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
