"""Run one case on a device: compile the operator, initialise it, and dispatch it twice."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from typing import Final

import numpy as np

from dmlconf.backends.directml import dml
from dmlconf.backends.directml.bindings import Resources, bind_initializer, bind_operator
from dmlconf.backends.directml.d3d12 import D3D12_HEAP_TYPE, D3D12_RESOURCE_STATES
from dmlconf.backends.directml.device import Device
from dmlconf.backends.directml.graph import compile_graph
from dmlconf.backends.directml.inspection import inspect
from dmlconf.backends.directml.memory import Buffer, DescriptorHeap
from dmlconf.backends.directml.placement import POISONS, Placement, place
from dmlconf.backends.directml.structs import NativeDesc
from dmlconf.backends.directml.vtable import ComObject
from dmlconf.backends.protocol import Fault
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array

__all__ = ["Executor"]

_FIRST_BYTES: Final = 1 << 22
_FIRST_DESCRIPTORS: Final = 1 << 12
_LARGE_BYTES: Final = 1 << 26
_POISON_BYTES: Final = 1 << 20

_States = D3D12_RESOURCE_STATES
_Heap = D3D12_HEAP_TYPE


class Executor:
    """Runs cases on one device, with buffers and descriptors that it keeps from case to case."""

    def __init__(
        self, device: Device, flags: dml.DML_EXECUTION_FLAGS, *, graph: bool = False
    ) -> None:
        """Make the descriptor heap and the bytes that poison memory.

        Args:
            device: where to run.
            flags: how operators are compiled.
            graph: whether each is compiled as a graph of one node.

        Raises:
            HResultError: there is not enough memory, or the device is gone.
        """
        self._device = device
        self._flags = flags
        self._graph = graph
        self._buffers: dict[str, Buffer] = {}
        self._heap = DescriptorHeap(device.d3d, _FIRST_DESCRIPTORS)
        self._poison = self._buffer("poison", _POISON_BYTES * len(POISONS), _Heap.UPLOAD)
        for index, byte in enumerate(POISONS):
            ctypes.memset(self._poison.memory + index * _POISON_BYTES, byte, _POISON_BYTES)

    def close(self) -> None:
        """Give back the buffers and the heap."""
        for buffer in self._buffers.values():
            buffer.release()
        self._buffers.clear()
        self._heap.release()

    def run(self, case: Case) -> tuple[dict[str, Array], tuple[Fault, ...]]:
        """Compile the case's operator, dispatch it twice, and return outputs and faults.

        Raises:
            HResultError: DirectML refuses the case, a call failed, or the device is gone.
            NativeFaultError: DirectML crashed, and Windows told.
        """
        with ExitStack() as owner:
            operator = owner.enter_context(self._create(case))
            if self._graph:
                placement = place(case)
                compiled = compile_graph(self._device.dml, operator, placement, self._flags)
                placement = placement.present()
            else:
                compiled = self._device.dml.create(
                    "CompileOperator", dml.IDML_COMPILED_OPERATOR, operator, self._flags
                )
                placement = place(case)
            owner.enter_context(compiled)
            before, after = self._execute(compiled, placement, case.inputs())
        return inspect(placement, before, after)

    def _create(self, case: Case) -> ComObject:
        desc = NativeDesc(case.operator, case.desc)
        return self._device.dml.create(
            "CreateOperator", dml.IDML_OPERATOR, ctypes.byref(desc.structure)
        )

    def _execute(
        self, compiled: ComObject, placement: Placement, data: dict[str, Array]
    ) -> tuple[list[Array], list[Array]]:
        """Initialise an operator, and dispatch it twice.

        Args:
            compiled: the compiled operator.
            placement: where the tensors lie.
            data: the inputs' arrays by tensor.

        Returns:
            The arena's bytes before and behind each dispatch.

        Raises:
            HResultError: a call failed, or the device is gone.
        """
        span = placement.span
        count = len(POISONS) + placement.any_owned()
        # The device refuses what is too large before this process fills as much memory.
        upload = self._buffer("upload", span * count, _Heap.UPLOAD)
        readback = self._buffer("readback", span * len(POISONS), _Heap.READBACK)
        self._buffer("arena", span, _Heap.DEFAULT)
        images = [placement.image(data, poison) for poison in POISONS]
        uploads = [*images, placement.initial(data)] if placement.any_owned() else images
        for index, image in enumerate(uploads):
            ctypes.memmove(upload.memory + index * span, image.ctypes.data, span)
        with ExitStack() as owner:
            self._record(compiled, placement, upload, readback, owner)
            self._device.submit()
        content = ctypes.string_at(readback.memory, span * len(POISONS))
        return images, list(np.frombuffer(content, np.uint8).reshape(-1, span))

    def _record(
        self,
        compiled: ComObject,
        placement: Placement,
        upload: Buffer,
        readback: Buffer,
        owner: ExitStack,
    ) -> None:
        """Record initialisation and dispatches; the stack owns what must live until they ran."""
        device = self._device
        operators = (ctypes.c_void_p * 1)(compiled.address)
        initializer = owner.enter_context(
            device.dml.create(
                "CreateOperatorInitializer", dml.IDML_OPERATOR_INITIALIZER, 1, operators
            )
        )
        initial = initializer.call("GetBindingProperties")
        needs = compiled.call("GetBindingProperties")
        scratch = max(initial.TemporaryResourceSize, needs.TemporaryResourceSize)
        kept = needs.PersistentResourceSize
        span = placement.span
        resources = Resources(
            self._buffer("arena", span, _Heap.DEFAULT),
            self._buffer("temporary", scratch, _Heap.DEFAULT) if scratch else None,
            self._buffer("persistent", kept, _Heap.DEFAULT) if kept else None,
        )
        counts = [max(p.RequiredDescriptorCount, 1) for p in (initial, needs)]
        self._make_room(sum(counts))
        tables = [
            owner.enter_context(self._table(dispatchable, first, count))
            for dispatchable, first, count in (
                (initializer, 0, counts[0]),
                (compiled, counts[0], counts[1]),
            )
        ]
        bind_initializer(tables[0], initial, needs, placement, resources)
        bind_operator(tables[1], needs, placement, resources)

        device.begin(self._heap)
        device.change(resources.all(), _States.COMMON, _States.COPY_DEST)
        initial_image = len(POISONS) if placement.any_owned() else 0
        device.copy(resources.arena, 0, upload, initial_image * span, span)
        self._fill(resources.temporary, scratch, 0)
        self._fill(resources.persistent, kept, 0)
        device.change(resources.all(), _States.COPY_DEST, _States.UNORDERED_ACCESS)
        device.dispatch(initializer, tables[0])
        for index in range(len(POISONS)):
            device.change(resources.fresh(), _States.UNORDERED_ACCESS, _States.COPY_DEST)
            device.copy(resources.arena, 0, upload, index * span, span)
            self._fill(resources.temporary, scratch, index)
            device.change(resources.fresh(), _States.COPY_DEST, _States.UNORDERED_ACCESS)
            device.dispatch(compiled, tables[1])
            device.change([resources.arena], _States.UNORDERED_ACCESS, _States.COPY_SOURCE)
            device.copy(readback, index * span, resources.arena, 0, span)
            device.change([resources.arena], _States.COPY_SOURCE, _States.UNORDERED_ACCESS)
        device.change(resources.all(), _States.UNORDERED_ACCESS, _States.COMMON)

    def _table(self, dispatchable: ComObject, first: int, count: int) -> ComObject:
        desc = self._heap.table(dispatchable, first, count)
        return self._device.dml.create(
            "CreateBindingTable", dml.IDML_BINDING_TABLE, ctypes.byref(desc)
        )

    def _fill(self, buffer: Buffer | None, size: int, poison: int) -> None:
        """Record that a buffer is filled with a poison."""
        for offset in range(0, size if buffer else 0, _POISON_BYTES):
            assert buffer is not None
            count = min(_POISON_BYTES, size - offset)
            self._device.copy(buffer, offset, self._poison, poison * _POISON_BYTES, count)

    def _make_room(self, descriptors: int) -> None:
        if self._heap.size < descriptors:
            self._heap.release()
            self._heap = DescriptorHeap(self._device.d3d, 1 << (descriptors - 1).bit_length())

    def _buffer(self, name: str, size: int, kind: D3D12_HEAP_TYPE) -> Buffer:
        """Return the kept buffer of that name, made larger where it is too small."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            if buffer is not None:
                self._buffers.pop(name).release()
            room = size if size > _LARGE_BYTES else max(_FIRST_BYTES, 1 << (size - 1).bit_length())
            buffer = self._buffers[name] = Buffer(self._device.d3d, room, kind)
        return buffer
