"""Bind buffers to an operator and to its initialiser."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.dml import DML_BINDING_DESC, DML_BINDING_TYPE, DML_BUFFER_BINDING
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.memory import Region
from dmlconf.backends.directml.dispatch.placement import PlacedTensor, Placement

__all__ = ["Resources", "bind_initializer", "bind_operator"]

_NOTHING: Final = DML_BUFFER_BINDING(None, 0, 0)


@dataclass(frozen=True, slots=True)
class Resources:
    """The memory that belongs to one case.

    Attributes:
        arena: the memory that holds all tensors.
        temporary: scratch memory, if any is needed.
        persistent: memory that the initialiser writes and the operator reads, if any is needed.
    """

    arena: Region
    temporary: Region | None
    persistent: Region | None


def bind_initializer(
    table: ComObject,
    needs: dml.DML_BINDING_PROPERTIES,
    operator_needs: dml.DML_BINDING_PROPERTIES,
    placement: Placement,
    resources: Resources,
) -> None:
    """Bind OWNED_BY_DML inputs, scratch memory and persistent memory to an initialiser."""
    if placement.any_owned():
        inputs = placement.inputs
        ranges = (DML_BUFFER_BINDING * len(inputs))(
            *(
                _tensor(tensor, resources.arena) if tensor and tensor.owned else _NOTHING
                for tensor in inputs
            )
        )
        array = dml.DML_BUFFER_ARRAY_BINDING(len(inputs), ctypes.addressof(ranges))
        binding = DML_BINDING_DESC(DML_BINDING_TYPE.BUFFER_ARRAY, ctypes.addressof(array))
        table.call("BindInputs", 1, ctypes.byref(binding))
    _bind_whole(table, "BindTemporaryResource", resources.temporary, needs.TemporaryResourceSize)
    if resources.persistent:
        # The persistent memory is the initialiser's output.
        whole = _range(resources.persistent, 0, operator_needs.PersistentResourceSize)
        binding = DML_BINDING_DESC(DML_BINDING_TYPE.BUFFER, ctypes.addressof(whole))
        table.call("BindOutputs", 1, ctypes.byref(binding))


def bind_operator(
    table: ComObject,
    needs: dml.DML_BINDING_PROPERTIES,
    placement: Placement,
    resources: Resources,
) -> None:
    """Bind an operator's tensors, scratch memory and persistent memory."""
    # The initialiser has bound the inputs that DirectML took over.
    inputs = [None if tensor is None or tensor.owned else tensor for tensor in placement.inputs]
    _bind_tensors(table, "BindInputs", inputs, resources.arena)
    _bind_tensors(table, "BindOutputs", placement.outputs, resources.arena)
    _bind_whole(table, "BindTemporaryResource", resources.temporary, needs.TemporaryResourceSize)
    _bind_whole(table, "BindPersistentResource", resources.persistent, needs.PersistentResourceSize)


def _range(region: Region, offset: int, size: int) -> DML_BUFFER_BINDING:
    return DML_BUFFER_BINDING(region.buffer.resource.address, region.offset + offset, size)


def _tensor(tensor: PlacedTensor, arena: Region) -> DML_BUFFER_BINDING:
    return _range(arena, tensor.offset, tensor.size)


def _bind_tensors(
    table: ComObject, call: str, tensors: Sequence[PlacedTensor | None], arena: Region
) -> None:
    ranges = (DML_BUFFER_BINDING * max(len(tensors), 1))()
    bindings = (DML_BINDING_DESC * max(len(tensors), 1))()
    for index, tensor in enumerate(tensors):
        if tensor is not None:
            ranges[index] = _tensor(tensor, arena)
            address = ctypes.addressof(ranges[index])
            bindings[index] = DML_BINDING_DESC(DML_BINDING_TYPE.BUFFER, address)
    table.call(call, len(tensors), bindings)


def _bind_whole(table: ComObject, call: str, region: Region | None, size: int) -> None:
    if region is not None and size:
        whole = _range(region, 0, size)
        binding = DML_BINDING_DESC(DML_BINDING_TYPE.BUFFER, ctypes.addressof(whole))
        table.call(call, ctypes.byref(binding))
