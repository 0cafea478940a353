"""Start worker processes fast, as copies of one that has imported dmlconf.

Only processes that tests start through `multiprocessing`, on Linux, are copies.
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
        """The environment variables of this process; unpickling sets them in another one."""

        def __reduce__(self) -> tuple[Callable[[dict[str, str]], None], tuple[dict[str, str]]]:
            return _take_over, (dict(os.environ),)

    def _take_over(variables: dict[str, str]) -> None:
        os.environ.clear()
        os.environ.update(variables)

    class _Copy(Popen):
        """A process with the environment variables, working folder and `sys.path` of this one."""

        def __init__(self, process: BaseProcess) -> None:
            # OpenBLAS may start no threads: a process with threads cannot be copied safely.
            with patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):
                forkserver.ensure_running()
            # The variables are unpickled first, since modules that are imported next may read them.
            process.__dict__ = {"_environment": _Environment(), **process.__dict__}
            super().__init__(process)


@contextmanager
def forked_workers() -> Iterator[None]:
    """Let worker processes that start in the block be copies; on other systems, do nothing."""
    if sys.platform != "linux":
        yield
        return
    multiprocessing.set_forkserver_preload([*_IMPORTED])
    with patch.object(SpawnProcess, "_Popen", staticmethod(_Copy)):
        yield
