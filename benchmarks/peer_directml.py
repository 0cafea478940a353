"""A bare loop around DirectML: no batches, no judging, no isolation. Runs inside the lab.

For every case it creates, compiles and initialises the operator, uploads the inputs, dispatches as
often as dmlconf does, and reads all memory back. Cases are prepared before the loop, which is not
counted. It prints the numbers of cases and of refused ones, and the seconds of the loop and of
opening the device, in wall time and processor time.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

from dmlconf.backends.directml.api import d3d12, dml
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import load
from dmlconf.backends.directml.api.structs import NativeDesc
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.adapters import Adapters, choose_adapter
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.devices.memory import Buffer, DescriptorHeap
from dmlconf.backends.directml.dispatch.placement import POISONS, Placement, placement_of
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import ExpectedRejection
from dmlconf.cases.plans import plan
from dmlconf.tensors.datatypes import Array

Work = tuple[NativeDesc, Placement, list[Array]]

States = d3d12.D3D12_RESOURCE_STATES
Heap = d3d12.D3D12_HEAP_TYPE
ROOM = 1 << 26
"""Bytes of each buffer of the loop, in which all its cases fit."""


def work(paths: list[Path]) -> list[Work]:
    """Return desc, placement and bytes of every case, except networks and large sizes."""
    prepared = []
    for planned in load_suite(paths).plan():
        if "model" in planned.template.tags or "sizes" in planned.identifier:
            continue
        case = build(planned)
        placement = placement_of(plan(case))
        images: list[Array] = []
        # What CreateOperator must refuse is never uploaded.
        if not isinstance(case.expectation, ExpectedRejection):
            data = case.inputs()
            images = [placement.initial(data), *(placement.image(data, p) for p in POISONS)]
        prepared.append((NativeDesc(case.operator, case.desc), placement, images))
    return prepared


class Loop:
    """The device and its memory."""

    def __init__(self) -> None:
        libraries = load(None)
        with Adapters(libraries) as adapters:
            adapter = choose_adapter(None, adapters.found)
            self.device = Device(libraries, adapters.native(adapter))
        d3d = self.device.d3d
        self.heap = DescriptorHeap(d3d, 4096)
        self.upload = Buffer(d3d, ROOM, Heap.UPLOAD)
        self.readback = Buffer(d3d, ROOM, Heap.READBACK)
        self.arena, self.scratch, self.kept = (Buffer(d3d, ROOM, Heap.DEFAULT) for _ in range(3))

    def binding(self, tensor: Any) -> Any:
        """Return the binding of a tensor and what it points to."""
        if tensor is None:
            return dml.DML_BINDING_DESC(), None
        return self.range(self.arena, tensor.offset, tensor.size)

    def range(self, buffer: Buffer, offset: int, size: int) -> Any:
        """Return the binding of a range and what it points to."""
        whole = dml.DML_BUFFER_BINDING(buffer.resource.address, offset, size)
        return dml.DML_BINDING_DESC(1, ctypes.addressof(whole)), whole

    def bind(self, table: ComObject, call: str, tensors: list[Any]) -> None:
        """Bind tensors by a method of the table, such as BindInputs."""
        made = [self.binding(tensor) for tensor in tensors]
        descs = (dml.DML_BINDING_DESC * max(len(made), 1))(*(desc for desc, _ in made))
        table.call(call, len(made), descs)

    def table(self, dispatchable: ComObject, first: int, needs: Any) -> ComObject:
        """Return a binding table with scratch memory."""
        desc = self.heap.table(dispatchable, first, max(needs.RequiredDescriptorCount, 1))
        made = self.device.dml.create(
            "CreateBindingTable", dml.IDML_BINDING_TABLE, ctypes.byref(desc)
        )
        if needs.TemporaryResourceSize:
            binding, _kept = self.range(self.scratch, 0, needs.TemporaryResourceSize)
            made.call("BindTemporaryResource", ctypes.byref(binding))
        return made

    def run(self, desc: NativeDesc, placement: Placement, images: list[Array]) -> bytes:
        """Run one case, and return its memory after each dispatch."""
        device = self.device
        operator = device.dml.create(
            "CreateOperator", dml.IDML_OPERATOR, ctypes.byref(desc.structure)
        )
        compiled = device.dml.create("CompileOperator", dml.IDML_COMPILED_OPERATOR, operator, 0)
        operators = (ctypes.c_void_p * 1)(compiled.address)
        initializer = device.dml.create(
            "CreateOperatorInitializer", dml.IDML_OPERATOR_INITIALIZER, 1, operators
        )
        initial_needs = initializer.call("GetBindingProperties")
        needs = compiled.call("GetBindingProperties")
        first = max(initial_needs.RequiredDescriptorCount, 1)
        tables = self.table(initializer, 0, initial_needs), self.table(compiled, first, needs)
        owned = [tensor if tensor and tensor.owned else None for tensor in placement.inputs]
        if any(owned):
            ranges = (dml.DML_BUFFER_BINDING * len(owned))(
                *(self.binding(tensor)[1] or dml.DML_BUFFER_BINDING() for tensor in owned)
            )
            array = dml.DML_BUFFER_ARRAY_BINDING(len(owned), ctypes.addressof(ranges))
            binding = dml.DML_BINDING_DESC(2, ctypes.addressof(array))
            tables[0].call("BindInputs", 1, ctypes.byref(binding))
        if needs.PersistentResourceSize:
            binding, _kept = self.range(self.kept, 0, needs.PersistentResourceSize)
            tables[0].call("BindOutputs", 1, ctypes.byref(binding))
            tables[1].call("BindPersistentResource", ctypes.byref(binding))
        inputs = [None if tensor and tensor.owned else tensor for tensor in placement.inputs]
        self.bind(tables[1], "BindInputs", inputs)
        self.bind(tables[1], "BindOutputs", list(placement.outputs))
        span = placement.span
        for index, image in enumerate(images):
            ctypes.memmove(self.upload.memory + index * span, image.ctypes.data, span)
        buffers = [self.arena]
        device.begin(self.heap)
        device.change(buffers, States.COMMON, States.COPY_DEST)
        device.copy(self.arena, 0, self.upload, 0, span)
        device.change(buffers, States.COPY_DEST, States.UNORDERED_ACCESS)
        device.dispatch(initializer, tables[0])
        for index in range(len(POISONS)):
            device.change(buffers, States.UNORDERED_ACCESS, States.COPY_DEST)
            device.copy(self.arena, 0, self.upload, (index + 1) * span, span)
            device.change(buffers, States.COPY_DEST, States.UNORDERED_ACCESS)
            device.dispatch(compiled, tables[1])
            device.change(buffers, States.UNORDERED_ACCESS, States.COPY_SOURCE)
            device.copy(self.readback, index * span, self.arena, 0, span)
            device.change(buffers, States.COPY_SOURCE, States.UNORDERED_ACCESS)
        device.change(buffers, States.UNORDERED_ACCESS, States.COMMON)
        device.submit()
        content = ctypes.string_at(self.readback.memory, span * len(POISONS))
        for made in (*tables, initializer, compiled, operator):
            made.release()
        return content


def main() -> None:
    """Run every case under the given paths once."""
    prepared = work(list(map(Path, sys.argv[1:])))
    began, before = time.perf_counter(), time.process_time()
    loop = Loop()
    refused = 0
    for desc, placement, images in prepared:
        try:
            loop.run(desc, placement, images)
        except HResultError:
            refused += 1
    seconds, processor = time.perf_counter() - began, time.process_time() - before
    print(len(prepared), refused, round(seconds, 3), round(processor, 3))


if __name__ == "__main__":
    main()
