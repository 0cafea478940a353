"""Start a process with a pipe between it and this one, even if the working folder was deleted."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from dmlconf.backends.process_start import existing_working_folder

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
        with existing_working_folder():
            process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours
