"""Run cases under circumstances on one device, and turn failed calls into outcomes."""

from __future__ import annotations

from time import perf_counter

from dmlconf.backends.circumstances import Circumstance, UnderCircumstance
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import NativeCrashError
from dmlconf.backends.directml.circumstances.bench import Bench
from dmlconf.backends.directml.circumstances.running import exercise
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.dispatch.operators import OperatorCache
from dmlconf.backends.directml.dispatch.outcomes import die, failure
from dmlconf.backends.protocol import Breakdown, BreakdownKind, Rejection
from dmlconf.cases.model import Case

__all__ = ["DirectMLExerciser"]


class DirectMLExerciser:
    """Runs cases under circumstances on one device."""

    def __init__(
        self, device: Device, operators: OperatorCache, flags: DML_EXECUTION_FLAGS, *, graph: bool
    ) -> None:
        """Start without memory.

        Args:
            operators: the operators of the plain runs, which need not be compiled again.
            flags: the flags with which the plain runs compile operators.
            graph: whether each operator is compiled as a graph of one node.
        """
        self._device = device
        self._flags = flags
        self._operators = {DML_EXECUTION_FLAGS.NONE: operators}
        self._bench = Bench(device, self._compiler, graph=graph)

    def _compiler(self, flags: DML_EXECUTION_FLAGS) -> OperatorCache:
        if flags not in self._operators:
            self._operators[flags] = OperatorCache(self._device.dml, self._flags | flags)
        return self._operators[flags]

    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        """Run a case under a circumstance; if DirectML crashes, the process ends."""
        began = perf_counter()
        try:
            try:
                return exercise(self._bench, case, circumstance)
            finally:
                for cache in self._operators.values():
                    cache.trim()
        except HResultError as error:
            outcome = failure(error, perf_counter() - began)
            if isinstance(outcome, Rejection | Breakdown):
                return outcome
            return Breakdown(BreakdownKind.ERROR, str(error))
        except NativeCrashError as error:
            die([case], error)

    def close(self) -> None:
        """Release the memory, and all operators but those of the plain runs."""
        self._bench.close()
        for flags, cache in self._operators.items():
            if flags:
                cache.close()
