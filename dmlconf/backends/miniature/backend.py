"""The backend `miniature:FAULT[,on=PART]`: the reference with one fault.

With `on=PART` only the cases whose identifier contains PART meet the fault. `miniature:level=LEVEL`
has no fault, and no more than that feature level has by the catalogue.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

import dmlconf
from dmlconf.backends.miniature.levels import capabilities_of, run_at
from dmlconf.backends.numpy.backend import HIGHEST_LEVEL, run_case
from dmlconf.backends.options import choose, split_options
from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.tensors.datatypes import DataType

__all__ = ["FAULTS", "LevelBackend", "MiniatureBackend", "create"]

_SLOW_SECONDS: Final = 0.5
_FIRST_LEVEL: Final = Capabilities(
    FEATURE_LEVELS[0], frozenset({DataType.FLOAT32, DataType.FLOAT16, DataType.UINT32})
)


def _zeros(case: Case) -> Outcome:
    """Accept everything, and compute nothing but zeros."""
    if isinstance(case.expectation, ExpectedRejection):
        return Outputs({})  # Accepting it is the fault; its tensors may be larger than any memory.
    return Outputs(
        {name: np.zeros(t.Sizes, t.DataType.dtype) for name, t in case.outputs().items()}
    )


def _wrong_type(case: Case) -> Outcome:
    """Compute rightly, and return another data type."""
    outcome = run_case(case)
    if not isinstance(outcome, Outputs):
        return outcome
    other = {name: np.float64 if a.dtype != np.float64 else np.float32
             for name, a in outcome.arrays.items()}  # fmt: skip
    return Outputs({name: array.astype(other[name]) for name, array in outcome.arrays.items()})


def _wrong_sizes(case: Case) -> Outcome:
    """Compute rightly, and return one dimension too many."""
    outcome = run_case(case)
    if not isinstance(outcome, Outputs):
        return outcome
    return Outputs({name: array[np.newaxis] for name, array in outcome.arrays.items()})


def _no_output(case: Case) -> Outcome:
    """Run, and return nothing."""
    return Outputs({})


def _rejects(case: Case) -> Outcome:
    """Refuse everything."""
    return Rejection("CreateOperator", "E_INVALIDARG")


def _crash(case: Case) -> Outcome:
    """End the process as a fault in a driver does."""
    print(f"miniature: about to crash on {case.identifier}", file=sys.stderr, flush=True)
    os.abort()


def _hang(case: Case) -> Outcome:
    """Never return."""
    while True:
        time.sleep(3600)


def _slow(case: Case) -> Outcome:
    """Compute rightly, but take half a second."""
    time.sleep(_SLOW_SECONDS)
    return run_case(case)


def _out_of_memory(case: Case) -> Outcome:
    """Ask for more memory than there is."""
    np.ones(1 << 60, np.uint8)
    return Outputs({})


def _device_removed(case: Case) -> Outcome:
    """Lose the device."""
    return Breakdown(BreakdownKind.DEVICE_REMOVED, "DXGI_ERROR_DEVICE_REMOVED after dispatch")


def _first_level(case: Case) -> Outcome:
    """Compute rightly what feature level 1_0 has, and refuse the rest."""
    return run_at(FEATURE_LEVELS[0], case)


def _error(case: Case) -> Outcome:
    """Fail with an exception, as a plugin with a mistake does."""
    raise RuntimeError("a mistake in the backend")


FAULTS: Final[Mapping[str, Callable[[Case], Outcome]]] = {
    "zeros": _zeros,
    "wrong-type": _wrong_type,
    "wrong-sizes": _wrong_sizes,
    "no-output": _no_output,
    "rejects": _rejects,
    "crash": _crash,
    "hang": _hang,
    "slow": _slow,
    "out-of-memory": _out_of_memory,
    "device-removed": _device_removed,
    "error": _error,
    "first-level": _first_level,
}
"""What each fault makes of a case; `first-level` is right, but supports level 1_0 only."""


@dataclass(frozen=True, slots=True)
class MiniatureBackend:
    """The reference with one fault.

    Attributes:
        fault: a name in `FAULTS`.
        part: only cases whose identifier contains it meet the fault.
    """

    fault: str
    part: str = ""

    def environment(self) -> Environment:
        """Return the fault's name as the adapter."""
        return Environment("miniature", dmlconf.__version__, adapter=self.fault)

    def capabilities(self) -> Capabilities:
        """Return everything, but for the fault `first-level`."""
        if self.fault == "first-level":
            return _FIRST_LEVEL
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case."""
        for case in cases:
            faulty = self.part in case.identifier
            yield FAULTS[self.fault](case) if faulty else run_case(case)

    def close(self) -> None:
        """Give nothing back."""


@dataclass(frozen=True, slots=True)
class LevelBackend:
    """The reference, limited to what the documentation of one feature level offers.

    Attributes:
        level: that feature level.
    """

    level: FeatureLevel

    def environment(self) -> Environment:
        """Return the level as the adapter."""
        return Environment("miniature", dmlconf.__version__, adapter=f"level {self.level}")

    def capabilities(self) -> Capabilities:
        """Return the level and its data types."""
        return capabilities_of(self.level)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case: a refusal, or what the reference computes."""
        return (run_at(self.level, case) for case in cases)

    def close(self) -> None:
        """Give nothing back."""


def create(argument: str) -> MiniatureBackend | LevelBackend:
    """Make the backend from what stands behind `miniature:` on the command line.

    Raises:
        BackendError: no fault or level is named, or an unknown one.
    """
    words, options = split_options(argument)
    if not words and options.keys() == {"level"}:
        levels = {str(level): level for level in FEATURE_LEVELS}
        return LevelBackend(levels[choose("feature level", options["level"], levels)])
    if len(words) != 1:
        faults = ", ".join(FAULTS)
        raise BackendError(
            f"name one fault, as miniature:zeros (one of {faults}), "
            "or a feature level, as miniature:level=3_1"
        )
    for name in options:
        choose("option of the backend miniature", name, ["on"])
    return MiniatureBackend(choose("fault", words[0], FAULTS), options.get("on", ""))
