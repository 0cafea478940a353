"""Compile operators and graphs, and keep them for later cases."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.dispatch.graph import compile_graph, create_operator
from dmlconf.cases.plans import GraphPlan, Plan

__all__ = ["MOST_KEPT", "CompiledOperator", "OperatorCache"]

MOST_KEPT: Final = 256
"""How many compiled operators `trim` keeps by default."""


@dataclass(frozen=True, slots=True)
class CompiledOperator:
    """A compiled operator or graph with its initialiser.

    Attributes:
        operator: the IDMLCompiledOperator.
        initializer: the IDMLOperatorInitializer of this operator alone.
    """

    operator: ComObject
    initializer: ComObject
    needs: dml.DML_BINDING_PROPERTIES
    initializer_needs: dml.DML_BINDING_PROPERTIES

    @property
    def descriptors(self) -> tuple[int, int]:
        """Numbers of descriptors of the initialiser and of the operator, at least 1 each."""
        each = (self.initializer_needs, self.needs)
        initializer, operator = (max(p.RequiredDescriptorCount, 1) for p in each)
        return initializer, operator

    @property
    def temporary_size(self) -> int:
        """Bytes of scratch memory that suffice for the operator and for its initialiser."""
        each = (self.needs, self.initializer_needs)
        return max(int(p.TemporaryResourceSize) for p in each)

    @property
    def persistent_size(self) -> int:
        """Bytes of the persistent resource, which the initialiser writes and the operator reads."""
        return int(self.needs.PersistentResourceSize)


class OperatorCache:
    """Compiles operators and graphs on one device, and keeps them until `trim` or `close`."""

    def __init__(self, device: ComObject, flags: dml.DML_EXECUTION_FLAGS) -> None:
        """Compile with at least these flags; `device` is the IDMLDevice."""
        self._device = device
        self._flags = flags
        self._cache: OrderedDict[Hashable, tuple[CompiledOperator, ExitStack]] = OrderedDict()

    def get(
        self, plan: Plan, flags: dml.DML_EXECUTION_FLAGS = dml.DML_EXECUTION_FLAGS.NONE
    ) -> CompiledOperator:
        """Return a compiled operator or graph; valid until `trim` or `close` releases it.

        Args:
            plan: the operator or the graph, with its bindings.
            flags: flags for this plan, in addition to those of the cache.

        Raises:
            HResultError: DirectML refuses the operator or the graph, or the device is gone.
            NativeCrashError: DirectML crashed.
        """
        flags |= self._flags
        key = flags, plan.key()
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key][0]
        with ExitStack() as owner:
            compiled = self._initializable(self._compile(plan, flags), owner)
            self._cache[key] = compiled, owner.pop_all()
        return compiled

    def trim(self, most: int = MOST_KEPT) -> None:
        """Release all but the `most` most recently used operators."""
        while len(self._cache) > most:
            _, (_, owner) = self._cache.popitem(last=False)
            owner.close()

    def close(self) -> None:
        """Release everything."""
        while self._cache:
            _, (_, owner) = self._cache.popitem()
            owner.close()

    def _compile(self, plan: Plan, flags: dml.DML_EXECUTION_FLAGS) -> ComObject:
        if isinstance(plan, GraphPlan):
            return compile_graph(self._device, plan, flags)
        with create_operator(self._device, plan.node) as operator:
            return self._device.create(
                "CompileOperator", dml.IDML_COMPILED_OPERATOR, operator, flags
            )

    def _initializable(self, compiled: ComObject, owner: ExitStack) -> CompiledOperator:
        owner.enter_context(compiled)
        operators = (ctypes.c_void_p * 1)(compiled.address)
        initializer = owner.enter_context(
            self._device.create(
                "CreateOperatorInitializer", dml.IDML_OPERATOR_INITIALIZER, 1, operators
            )
        )
        needs, initial = (each.call("GetBindingProperties") for each in (compiled, initializer))
        return CompiledOperator(compiled, initializer, needs, initial)
