"""The backend `numpy`: checks a desc against the catalogue, then computes with the reference."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Final

import numpy as np

from dmlconf.backends.errors import OptionError
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import DataType

__all__ = ["HIGHEST_LEVEL", "NumpyBackend", "create", "run_case"]

HIGHEST_LEVEL: Final = FeatureLevel(6, 4)
"""DirectML's highest feature level; backends without feature levels report it."""


class NumpyBackend:
    """The reference as a backend."""

    def environment(self) -> Environment:
        """Return NumPy's version and, as adapter, the processor's architecture, None if unknown."""
        return Environment("numpy", np.__version__, adapter=platform.machine() or None)

    def capabilities(self) -> Capabilities:
        """Return the highest feature level and every data type."""
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield what `run_case` returns for each case."""
        return map(run_case, cases)

    def close(self) -> None:
        """Do nothing."""


def create(argument: str) -> NumpyBackend:
    """Create the backend.

    Raises:
        BackendError: there are options after `numpy:`, which takes none.
    """
    if argument:
        raise OptionError(f"the backend numpy takes no argument, but got {argument!r}")
    return NumpyBackend()


def run_case(case: Case) -> Outcome:
    """Return the outcome of a case on the reference.

    This is a rejection with E_INVALIDARG if the case breaks a constraint that DirectML enforces,
    and a breakdown if memory runs out.
    """
    began = perf_counter()
    broken = case.violations()
    if broken:
        return Rejection("CreateOperator", "E_INVALIDARG", broken, perf_counter() - began)
    try:
        outputs = evaluate(case)
    except MemoryError as error:
        message = f"the reference needs more memory than is available: {error}"
        return Breakdown(BreakdownKind.OUT_OF_MEMORY, message, "", perf_counter() - began)
    return Outputs(outputs, perf_counter() - began)
