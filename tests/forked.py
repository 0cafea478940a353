"""Start worker processes as copies of one that has imported what they need.

A process of its own imports NumPy and dmlconf first, which takes ten times as long as most tests
give it to do. Only processes that tests start through `multiprocessing` are copies, on Linux; what
they start as a command is not, nor are the workers of such a command.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from multiprocessing.process import BaseProcess
from typing import Final
from unittest.mock import patch

__all__ = ["forked_workers"]

_IMPORTED: Final = (
    "dmlconf.workers.worker",
    "dmlconf.backends.faulty.backend",
    "dmlconf.engine.parallel",
)

if sys.platform == "linux":
    from multiprocessing import forkserver
    from multiprocessing.popen_forkserver import Popen

    class _Environment:
        """The variables of this process, which one that unpickles them takes over."""

        def __reduce__(self) -> tuple[Callable[[dict[str, str]], None], tuple[dict[str, str]]]:
            return _take_over, (dict(os.environ),)

    def _take_over(variables: dict[str, str]) -> None:
        os.environ.clear()
        os.environ.update(variables)

    class _Copy(Popen):
        """A process that has this one's variables, working folder and path of modules."""

        def __init__(self, process: BaseProcess) -> None:
            # The server has those of when it started; its copies must have no threads.
            with patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):
                forkserver.ensure_running()
            # First, so that it is there before the module of what the process runs is imported.
            process.__dict__ = {"_environment": _Environment(), **process.__dict__}
            super().__init__(process)


@contextmanager
def forked_workers() -> Iterator[None]:
    """Let worker processes that start in the block be copies; elsewhere than on Linux, nothing."""
    if sys.platform != "linux":
        yield
        return
    multiprocessing.set_forkserver_preload([*_IMPORTED])
    with patch.object(SpawnProcess, "_Popen", staticmethod(_Copy)):
        yield
