"""Run batches of cases on a device: initialise each operator or graph, and dispatch it twice."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.d3d12 import D3D12_HEAP_TYPE, D3D12_RESOURCE_STATES
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.devices.memory import (
    LARGE_BYTES,
    Buffer,
    Buffers,
    DescriptorHeap,
    Region,
)
from dmlconf.backends.directml.dispatch.batch import (
    MOST_DESCRIPTORS,
    MOST_WORK,
    Batch,
    Member,
    Prepared,
)
from dmlconf.backends.directml.dispatch.bindings import Resources, bind_initializer, bind_operator
from dmlconf.backends.directml.dispatch.case_flags import flags_of
from dmlconf.backends.directml.dispatch.inspection import Inspection, inspect
from dmlconf.backends.directml.dispatch.operators import MOST_KEPT, OperatorCache
from dmlconf.backends.directml.dispatch.placement import POISONS, placement_of
from dmlconf.backends.directml.dispatch.staging import STAGED_BYTES, Staging, mapped
from dmlconf.backends.directml.dispatch.timestamps import Timestamps
from dmlconf.backends.protocol import Fault
from dmlconf.cases.model import Case
from dmlconf.cases.plans import plan
from dmlconf.cases.work import work_of
from dmlconf.tensors.datatypes import Array

__all__ = ["Executor", "Result"]

_POISON_BYTES: Final = 1 << 20
"""Memory is filled by copies of at most this many bytes from a buffer of fill values."""

_ROUNDS: Final = len(POISONS)
"""How often each operator is dispatched: once for each fill value."""

_States = D3D12_RESOURCE_STATES
_Heap = D3D12_HEAP_TYPE


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a case's two dispatches.

    Attributes:
        arrays: the outputs of the first dispatch, by tensor.
        faults: the faults of both dispatches.
        dispatch_seconds: how long each dispatch took by the device's clock; empty if unknown.
    """

    arrays: dict[str, Array]
    faults: tuple[Fault, ...]
    dispatch_seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Bound:
    member: Member
    initializer_table: ComObject
    operator_table: ComObject


class Executor:
    """Runs cases on one device; operators, buffers and descriptors are kept from batch to batch."""

    def __init__(
        self, device: Device, flags: dml.DML_EXECUTION_FLAGS, *, graph: bool = False
    ) -> None:
        """Compile operators with these flags and a case's own; with `graph`, as graphs of one node.

        Raises:
            HResultError: there is not enough memory, or the device is gone.
        """
        self._device = device
        self._graph = graph
        self._operators = OperatorCache(device.dml, flags)
        self._timestamps = Timestamps(device.d3d, device.queue)
        self._buffers = Buffers(device.d3d)
        self._heap = DescriptorHeap(device.d3d, MOST_DESCRIPTORS)
        self._poison = self._buffer("poison", _POISON_BYTES * _ROUNDS, _Heap.UPLOAD)
        for index, byte in enumerate(POISONS):
            ctypes.memset(self._poison.memory + index * _POISON_BYTES, byte, _POISON_BYTES)

    @property
    def operators(self) -> OperatorCache:
        """The compiled operators."""
        return self._operators

    def close(self) -> None:
        """Release the operators, the timestamps, the buffers and the descriptor heap."""
        self._operators.close()
        self._timestamps.close()
        self._buffers.release()
        self._heap.release()

    def prepare(self, case: Case) -> Prepared:
        """Compile a case; the result can be run until `trim` releases its operator.

        Raises:
            HResultError: DirectML refuses the case, or the device is gone.
            NativeCrashError: DirectML crashed.
        """
        began = perf_counter()
        compilation = plan(case, as_graph=self._graph)
        placement = placement_of(compilation)
        compiled = self._operators.get(compilation, flags_of(case.tags))
        return Prepared(case, compiled, placement, perf_counter() - began, work_of(case))

    def trim(self, most: int = MOST_KEPT) -> None:
        """Release all but the `most` most recently used operators."""
        self._operators.trim(most)

    def run(self, batch: Batch) -> list[Result]:
        """Initialise the operators, dispatch each twice, and return the results in order.

        Raises:
            HResultError: a call failed.
            NativeCrashError: DirectML crashed.
        """
        if len(batch) == 1 and (batch.arena > LARGE_BYTES or batch.work > MOST_WORK):
            return [self._run_large(next(iter(batch)), batch)]
        inputs = [member.prepared.case.inputs() for member in batch]
        owned = any(member.prepared.placement.any_owned() for member in batch)
        # Get these three buffers first: if the memory does not suffice, no image is made.
        upload = self._buffer("upload", batch.arena * (_ROUNDS + owned), _Heap.UPLOAD)
        readback = self._buffer("readback", batch.arena * _ROUNDS, _Heap.READBACK)
        self._buffer("arena", batch.arena, _Heap.DEFAULT)
        before = [
            [member.prepared.placement.image(data, poison) for poison in POISONS]
            for member, data in zip(batch, inputs, strict=True)
        ]
        for member, data, images in zip(batch, inputs, before, strict=True):
            initial = [member.prepared.placement.initial(data)] if owned else []
            for index, image in enumerate((*images, *initial)):
                address = upload.memory + index * batch.arena + member.arena
                ctypes.memmove(address, image.ctypes.data, len(image))
        with ExitStack() as owner:
            self._record(batch, owned, upload, readback, owner)
            self._device.submit()
        after = mapped(readback, batch.arena * _ROUNDS).reshape(_ROUNDS, batch.arena)
        seconds = self._timestamps.seconds(2 * _ROUNDS * len(batch))
        results = []
        for index, (member, images) in enumerate(zip(batch, before, strict=True)):
            placement = member.prepared.placement
            own = after[:, member.arena : member.arena + placement.span]
            arrays, faults = inspect(placement, images, list(own))
            results.append(Result(arrays, faults, tuple(seconds[index :: len(batch)])))
        return results

    def _run_large(self, member: Member, batch: Batch) -> Result:
        """Run one large case: copy its arena in pieces, and submit each dispatch separately."""
        device, clock, placement = self._device, self._timestamps, member.prepared.placement
        arena, temporary, persistent = self._memory(batch)
        every = [buffer for buffer in (arena, temporary, persistent) if buffer]
        self._make_room(batch.descriptors)
        clock.make_room(2)
        inputs = _Inputs(member.prepared.case)
        staging = Staging(
            device,
            self._heap,
            self._buffer("upload", STAGED_BYTES, _Heap.UPLOAD),
            self._buffer("readback", STAGED_BYTES, _Heap.READBACK),
        )
        inspection, seconds = Inspection(placement), []
        after = np.empty(batch.arena, np.uint8)
        with ExitStack() as owner:
            bound = self._bind(member, arena, temporary, persistent, owner)
            if placement.any_owned():
                staging.upload(arena, placement.initial(inputs))
            device.begin(self._heap)
            device.change(every, _States.COMMON, _States.COPY_DEST)
            self._fill(temporary, batch.temporary, 0)
            self._fill(persistent, batch.persistent, 0)
            device.change(every, _States.COPY_DEST, _States.UNORDERED_ACCESS)
            device.dispatch(member.prepared.compiled.initializer, bound.initializer_table)
            device.change(every, _States.UNORDERED_ACCESS, _States.COMMON)
            device.submit()
            image = placement.image(inputs, POISONS[0])
            for index, poison in enumerate(POISONS):
                if index:
                    placement.poison(image, poison)
                staging.upload(arena, image)
                device.begin(self._heap)
                device.change(every, _States.COMMON, _States.COPY_DEST)
                self._fill(temporary, batch.temporary, index)
                device.change(every, _States.COPY_DEST, _States.UNORDERED_ACCESS)
                clock.take(device.commands, 0)
                device.dispatch(member.prepared.compiled.operator, bound.operator_table)
                clock.take(device.commands, 1)
                clock.collect(device.commands, 2)
                device.change(every, _States.UNORDERED_ACCESS, _States.COMMON)
                device.submit()
                seconds += clock.seconds(2)
                staging.download(arena, after)
                inspection.add(image, after)
        return Result(inspection.arrays, inspection.faults(), tuple(seconds))

    def _record(
        self, batch: Batch, owned: bool, upload: Buffer, readback: Buffer, owner: ExitStack
    ) -> None:
        device, clock = self._device, self._timestamps
        arena, temporary, persistent = self._memory(batch)
        fresh = [buffer for buffer in (arena, temporary) if buffer]
        every = [*fresh, persistent] if persistent else fresh
        self._make_room(batch.descriptors)
        clock.make_room(2 * _ROUNDS * len(batch))
        bound = [self._bind(member, arena, temporary, persistent, owner) for member in batch]

        device.begin(self._heap)
        device.change(every, _States.COMMON, _States.COPY_DEST)
        if owned:
            device.copy(arena, 0, upload, _ROUNDS * batch.arena, batch.arena)
        self._fill(temporary, batch.temporary, 0)
        self._fill(persistent, batch.persistent, 0)
        device.change(every, _States.COPY_DEST, _States.UNORDERED_ACCESS)
        for each in bound:
            device.dispatch(each.member.prepared.compiled.initializer, each.initializer_table)
        for index in range(_ROUNDS):
            device.change(fresh, _States.UNORDERED_ACCESS, _States.COPY_DEST)
            device.copy(arena, 0, upload, index * batch.arena, batch.arena)
            self._fill(temporary, batch.temporary, index)
            device.change(fresh, _States.COPY_DEST, _States.UNORDERED_ACCESS)
            for number, each in enumerate(bound, index * len(batch)):
                clock.take(device.commands, 2 * number)
                device.dispatch(each.member.prepared.compiled.operator, each.operator_table)
                clock.take(device.commands, 2 * number + 1)
            device.change([arena], _States.UNORDERED_ACCESS, _States.COPY_SOURCE)
            device.copy(readback, index * batch.arena, arena, 0, batch.arena)
            device.change([arena], _States.COPY_SOURCE, _States.UNORDERED_ACCESS)
        clock.collect(device.commands, 2 * _ROUNDS * len(batch))
        device.change(every, _States.UNORDERED_ACCESS, _States.COMMON)

    def _bind(
        self,
        member: Member,
        arena: Buffer,
        temporary: Buffer | None,
        persistent: Buffer | None,
        owner: ExitStack,
    ) -> _Bound:
        compiled, placement = member.prepared.compiled, member.prepared.placement
        resources = Resources(
            Region(arena, member.arena, placement.span),
            _region(temporary, member.temporary, compiled.temporary_size),
            _region(persistent, member.persistent, compiled.persistent_size),
        )
        first, (initial, own) = member.descriptor, compiled.descriptors
        bound = _Bound(
            member,
            owner.enter_context(self._table(compiled.initializer, first, initial)),
            owner.enter_context(self._table(compiled.operator, first + initial, own)),
        )
        needs, initial_needs = compiled.needs, compiled.initializer_needs
        bind_initializer(bound.initializer_table, initial_needs, needs, placement, resources)
        bind_operator(bound.operator_table, needs, placement, resources)
        return bound

    def _table(self, dispatchable: ComObject, first: int, count: int) -> ComObject:
        desc = self._heap.table(dispatchable, first, count)
        return self._device.dml.create(
            "CreateBindingTable", dml.IDML_BINDING_TABLE, ctypes.byref(desc)
        )

    def _fill(self, buffer: Buffer | None, size: int, poison: int) -> None:
        """Record that the first `size` bytes of a buffer become `POISONS[poison]`."""
        for offset in range(0, size if buffer else 0, _POISON_BYTES):
            assert buffer is not None
            count = min(_POISON_BYTES, size - offset)
            self._device.copy(buffer, offset, self._poison, poison * _POISON_BYTES, count)

    def _make_room(self, descriptors: int) -> None:
        if self._heap.size < descriptors:
            larger = DescriptorHeap(self._device.d3d, 1 << (descriptors - 1).bit_length())
            self._heap.release()
            self._heap = larger

    def _memory(self, batch: Batch) -> tuple[Buffer, Buffer | None, Buffer | None]:
        arena = self._buffer("arena", batch.arena, _Heap.DEFAULT)
        temporary = self._optional("temporary", batch.temporary)
        return arena, temporary, self._optional("persistent", batch.persistent)

    def _optional(self, name: str, size: int) -> Buffer | None:
        return self._buffer(name, size, _Heap.DEFAULT) if size else None

    def _buffer(self, name: str, size: int, kind: D3D12_HEAP_TYPE) -> Buffer:
        return self._buffers.get(name, size, kind)


class _Inputs(Mapping[str, Array]):
    """A case's inputs; those of generators are made at each access, to keep fewer in memory."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def __getitem__(self, name: str) -> Array:
        return self._case.input(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._case.input_names())

    def __len__(self) -> int:
        return len(self._case.input_names())


def _region(buffer: Buffer | None, offset: int, size: int) -> Region | None:
    return Region(buffer, offset, size) if buffer and size else None
