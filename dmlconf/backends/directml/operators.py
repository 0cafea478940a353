"""Create and compile operators, and keep what was compiled for cases that have the same desc."""

from __future__ import annotations

import ctypes
import struct
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.backends.directml import dml
from dmlconf.backends.directml.graph import compile_graph
from dmlconf.backends.directml.placement import Placement
from dmlconf.backends.directml.structs import NativeDesc
from dmlconf.backends.directml.vtable import ComObject
from dmlconf.cases.model import Case

__all__ = ["CompiledOperator", "OperatorCache", "desc_key"]

MOST_KEPT: Final = 256
"""Compiled operators that are kept."""


@dataclass(frozen=True, slots=True)
class CompiledOperator:
    """A compiled operator with its initialiser.

    Attributes:
        operator: the IDMLCompiledOperator.
        initializer: the IDMLOperatorInitializer for it alone.
        needs: what the operator needs.
        initializer_needs: what the initialiser needs.
    """

    operator: ComObject
    initializer: ComObject
    needs: dml.DML_BINDING_PROPERTIES
    initializer_needs: dml.DML_BINDING_PROPERTIES

    @property
    def descriptors(self) -> tuple[int, int]:
        """Descriptors of the initialiser's binding table and of the operator's, at least 1 each."""
        each = (self.initializer_needs, self.needs)
        initializer, operator = (max(p.RequiredDescriptorCount, 1) for p in each)
        return initializer, operator

    @property
    def temporary_size(self) -> int:
        """Bytes of scratch memory that suffice for both."""
        each = (self.needs, self.initializer_needs)
        return max(int(p.TemporaryResourceSize) for p in each)

    @property
    def persistent_size(self) -> int:
        """Bytes that the initialiser leaves to the operator."""
        return int(self.needs.PersistentResourceSize)


class OperatorCache:
    """Compiles operators on one device, and keeps those that were used last."""

    def __init__(
        self, device: ComObject, flags: dml.DML_EXECUTION_FLAGS, *, graph: bool = False
    ) -> None:
        """Begin with nothing compiled.

        Args:
            device: the IDMLDevice.
            flags: how operators are compiled.
            graph: whether each is compiled as a graph of one node.
        """
        self._device = device
        self._flags = flags
        self._graph = graph
        self._cache: OrderedDict[Hashable, tuple[CompiledOperator, ExitStack]] = OrderedDict()

    def get(self, case: Case, placement: Placement) -> CompiledOperator:
        """Return the case's operator, compiled now or before; it lives until the next `trim`.

        Args:
            case: tells the operator and its desc.
            placement: tells a graph which tensors are present.

        Raises:
            HResultError: DirectML refuses the desc, or the device is gone.
            NativeFaultError: DirectML crashed, and Windows told.
        """
        key = desc_key(case)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key][0]
        with ExitStack() as owner:
            compiled = self._compile(case, placement, owner)
            self._cache[key] = compiled, owner.pop_all()
        return compiled

    def trim(self) -> None:
        """Give back what was not used for longest, where more is kept than may be."""
        while len(self._cache) > MOST_KEPT:
            _, (_, owner) = self._cache.popitem(last=False)
            owner.close()

    def close(self) -> None:
        """Give back everything."""
        while self._cache:
            _, (_, owner) = self._cache.popitem()
            owner.close()

    def _compile(self, case: Case, placement: Placement, owner: ExitStack) -> CompiledOperator:
        desc = NativeDesc(case.operator, case.desc)
        device = self._device
        pointer = ctypes.byref(desc.structure)
        with device.create("CreateOperator", dml.IDML_OPERATOR, pointer) as operator:
            if self._graph:
                compiled = compile_graph(device, operator, placement, self._flags)
            else:
                compiled = device.create(
                    "CompileOperator", dml.IDML_COMPILED_OPERATOR, operator, self._flags
                )
        owner.enter_context(compiled)
        operators = (ctypes.c_void_p * 1)(compiled.address)
        initializer = owner.enter_context(
            device.create("CreateOperatorInitializer", dml.IDML_OPERATOR_INITIALIZER, 1, operators)
        )
        needs, initial = (each.call("GetBindingProperties") for each in (compiled, initializer))
        return CompiledOperator(compiled, initializer, needs, initial)


def desc_key(case: Case) -> Hashable:
    """Return what tells operators with their descs apart, whatever the data."""
    return case.operator_name, _key(case.desc)


def _key(value: Any) -> Hashable:
    if isinstance(value, float):
        # Bits tell zeros and NaN apart that compare otherwise than DirectML sees them.
        return struct.pack("<d", value)
    if isinstance(value, Mapping):
        return tuple((name, _key(item)) for name, item in sorted(value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_key, value))
    hashable: Hashable = value
    return hashable
