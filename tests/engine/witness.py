"""A plugin's backend, which lists the cases of which a worker has taken the outcome.

It appends their identifiers to the file that the environment variable DMLCONF_TEST_WITNESS names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dmlconf.backends.numpy.backend import HIGHEST_LEVEL, run_case
from dmlconf.backends.protocol import Backend, Capabilities, Environment, Outcome
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import DataType
from tests.backends.installing import install_plugin

__all__ = ["CASES", "COUNT", "FILE", "Witness", "create", "install"]

FILE: Final = "DMLCONF_TEST_WITNESS"

COUNT: Final = 400
"""Enough cases that an early interrupt leaves some that were not run."""

CASES: Final = f"""
operator: TILE
cases:
  - matrix: {{Number: "=range({COUNT})"}}
    desc:
      InputTensor:
        Sizes: [30000]
        DataType: FLOAT32
        fill: {{uniform: {{low: -1, high: 1, seed: =Number}}}}
      OutputTensor: {{Sizes: [60000], DataType: FLOAT32}}
      Repeats: [2]
"""
"""Cases that take longer to judge than to run, so that outcomes wait in pipes."""


class Witness:
    """The reference; every fiftieth case takes longer."""

    def __init__(self) -> None:
        self._notes = os.open(os.environ[FILE], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def environment(self) -> Environment:
        return Environment("witness", "1", "one", "1")

    def capabilities(self) -> Capabilities:
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for number, case in enumerate(cases, 1):
            if case.identifier.endswith(("00]", "50]")):
                time.sleep(0.3)
            yield run_case(case)
            # The last of a batch is not listed: it is taken after the next outcome is asked for.
            if number < len(cases):
                os.write(self._notes, f"{case.identifier}\n".encode())

    def close(self) -> None:
        """Release nothing."""


def create(argument: str) -> Backend:
    return Witness()


def install(folder: Path) -> None:
    install_plugin(folder, "witness", module=__name__)
