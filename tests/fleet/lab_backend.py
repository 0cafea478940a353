"""A backend for tests of fleets: its adapter can be chosen, and a case can kill a worker.

A case with `deadly` in its name kills the parent process, a worker of Dask.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from dmlconf.backends.numpy.backend import HIGHEST_LEVEL, run_case
from dmlconf.backends.protocol import Backend, Capabilities, Environment, Outcome
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import DataType
from tests.backends.installing import install_plugin

__all__ = ["LabBackend", "create", "install"]


class LabBackend:
    def environment(self) -> Environment:
        """Return an environment with the adapter that LAB_ADAPTER names, or `one`.

        If LAB_OPENED names a file that does not exist, create it, and never return.
        """
        opened = os.environ.get("LAB_OPENED")
        if opened is not None and not Path(opened).exists():
            Path(opened).touch()
            time.sleep(3600)
        return Environment("lab", "1", os.environ.get("LAB_ADAPTER", "one"), "32.0.1")

    def capabilities(self) -> Capabilities:
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            if "deadly" in case.identifier:
                os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(0.05)
            yield run_case(case)

    def close(self) -> None:
        """Release nothing."""


def create(argument: str) -> Backend:
    return LabBackend()


def install(folder: Path) -> None:
    install_plugin(folder, "lab", module=__name__)
