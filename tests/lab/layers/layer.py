"""Layers between dmlconf and the native libraries, which replace methods in the vtables.

`python layer.py LAYER ARGUMENTS...` runs `dmlconf ARGUMENTS...` with the layer in its workers.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.d3d12 import ID3D12_DEVICE
from dmlconf.backends.directml.api.library import load
from dmlconf.backends.directml.api.sdklayers import (
    D3D12_MESSAGE,
    D3D12_MESSAGE_SEVERITY,
    ID3D12_INFO_QUEUE,
)
from dmlconf.backends.directml.api.vtable import NEW_OBJECT, ComObject, prototype
from dmlconf.backends.directml.devices.adapters import Adapters, choose_adapter
from dmlconf.backends.directml.devices.device import Device

POINTER: Final = ctypes.c_void_p
HRESULT: Final = ctypes.c_int32
POINTER_BYTES: Final = ctypes.sizeof(POINTER)

PAGE_READWRITE: Final = 4
ELEMENT_WISE_ADD, ELEMENT_WISE_SUBTRACT = 4, 30
NODE_BYTES: Final = 16

Hook = Callable[..., Any]

_alive: list[Any] = []
"""Objects that native code may still use."""


def replace_method(com: ComObject, name: str, arguments: tuple[Any, ...], hook: Hook) -> None:
    """Let a method of all objects of a class call `hook(original, this, *arguments)`."""
    slot, _ = com.interface.slots[name]
    table = POINTER.from_address(com.address).value or 0
    entry = table + slot * POINTER_BYTES
    kind: Any = prototype(HRESULT, POINTER, *arguments)
    original = kind(POINTER.from_address(entry).value)
    callback = kind(lambda this, *values: hook(original, this, *values))
    _alive.append(callback)
    before = ctypes.c_uint32()
    protect = ctypes.CDLL("kernel32.dll").VirtualProtect
    protect.argtypes = (POINTER, ctypes.c_size_t, ctypes.c_uint32, POINTER)
    assert protect(entry, POINTER_BYTES, PAGE_READWRITE, ctypes.byref(before))
    POINTER.from_address(entry).value = ctypes.cast(callback, POINTER).value
    assert protect(entry, POINTER_BYTES, before.value, ctypes.byref(before))


class SubtractsForAdd:
    """Compiles ELEMENT_WISE_SUBTRACT instead of ELEMENT_WISE_ADD, whose desc has the same form."""

    def __init__(self, device: Device, *, wrong: Callable[[int], bool], graphs: bool) -> None:
        """Subtract in CompileGraph if `graphs`, else in CompileOperator if `wrong` of the flags."""
        self._others: dict[int, int] = {}
        self._wrong = wrong
        replace_method(device.dml, "CreateOperator", (POINTER, *NEW_OBJECT), self.create)
        flagged = (POINTER, ctypes.c_uint32, *NEW_OBJECT)
        if graphs:
            with device.dml.create("QueryInterface", dml.IDML_DEVICE1) as newer:
                replace_method(newer, "CompileGraph", flagged, self.compile_graph)
        else:
            replace_method(device.dml, "CompileOperator", flagged, self.compile)

    def create(self, original: Hook, this: int, desc: int, iid: int, new: Any) -> int:
        result = int(original(this, desc, iid, new))
        operator = new[0] if result >= 0 else 0
        self._others.pop(operator or 0, None)
        kind = ctypes.c_uint32.from_address(desc)
        if operator and kind.value == ELEMENT_WISE_ADD:
            kind.value = ELEMENT_WISE_SUBTRACT
            other = POINTER()
            assert original(this, desc, iid, ctypes.byref(other)) >= 0
            kind.value = ELEMENT_WISE_ADD
            self._others[operator] = other.value or 0
        return result

    def compile(
        self, original: Hook, this: int, operator: int, flags: int, iid: int, new: int
    ) -> int:
        chosen = self._others.get(operator, operator) if self._wrong(flags) else operator
        return int(original(this, chosen, flags, iid, new))

    def compile_graph(
        self, original: Hook, this: int, desc: int, flags: int, iid: int, new: int
    ) -> int:
        # The third of three counts is that of nodes. A node is a type and the pointer to a desc,
        # which begins with the operator.
        count = ctypes.c_uint32.from_address(desc + 8).value
        nodes = POINTER.from_address(desc + 16).value or 0
        for index in range(count):
            node = nodes + index * NODE_BYTES
            if ctypes.c_uint32.from_address(node).value == 1:
                operator = POINTER.from_address(POINTER.from_address(node + 8).value or 0)
                operator.value = self._others.get(operator.value or 0, operator.value)
        return int(original(this, desc, flags, iid, new))


def wrong_metacommand(device: Device) -> None:
    """Subtract instead of adding, unless metacommands are off."""

    def wrong(flags: int) -> bool:
        return not flags & dml.DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS

    SubtractsForAdd(device, wrong=wrong, graphs=False)


def wrong_half(device: Device) -> None:
    """Subtract instead of adding if half precision is allowed."""

    def wrong(flags: int) -> bool:
        return bool(flags & dml.DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION)

    SubtractsForAdd(device, wrong=wrong, graphs=False)


def wrong_graph(device: Device) -> None:
    """Subtract instead of adding in graphs."""
    SubtractsForAdd(device, wrong=lambda flags: True, graphs=True)


class DebugLayer:
    """Adds an ID3D12InfoQueue, with messages when operators are created."""

    def __init__(self, device: Device) -> None:
        self._messages: list[tuple[D3D12_MESSAGE_SEVERITY, str]] = []
        self._queue = self._new_queue()
        replace_method(device.d3d, "QueryInterface", NEW_OBJECT, self.query_interface)
        replace_method(device.dml, "CreateOperator", (POINTER, *NEW_OBJECT), self.create)

    def _new_queue(self) -> Any:
        """Return a COM object in which methods that dmlconf does not call do nothing."""
        methods: dict[str, tuple[Any, tuple[Any, ...], Hook]] = {
            "AddRef": (ctypes.c_uint32, (), lambda this: 2),
            "Release": (ctypes.c_uint32, (), lambda this: 1),
            "ClearStoredMessages": (None, (), lambda this: self._messages.clear()),
            "GetNumStoredMessages": (ctypes.c_uint64, (), lambda this: len(self._messages)),
            "GetMessage": (HRESULT, (ctypes.c_uint64, POINTER, POINTER), self.message),
        }
        table = (POINTER * ID3D12_INFO_QUEUE.length)()
        for name, (slot, _) in ID3D12_INFO_QUEUE.slots.items():
            nothing: tuple[Any, tuple[Any, ...], Hook] = (HRESULT, (), lambda this: 0)
            result, arguments, method = methods.get(name, nothing)
            kind: Any = prototype(result, POINTER, *arguments)
            callback = kind(method)
            table[slot] = ctypes.cast(callback, POINTER).value
            _alive.append(callback)
        _alive.append(table)
        return POINTER(ctypes.addressof(table))

    def query_interface(self, original: Hook, this: int, iid: Any, new: Any) -> int:
        if str(iid.contents) == ID3D12_INFO_QUEUE.iid:
            new[0] = ctypes.addressof(self._queue)
            return 0
        return int(original(this, iid, new))

    def create(self, original: Hook, this: int, desc: int, iid: Any, new: Any) -> int:
        result = int(original(this, desc, iid, new))
        number = ctypes.c_uint32.from_address(desc).value
        self._messages.append((D3D12_MESSAGE_SEVERITY.INFO, "an operator is created"))
        if result < 0:
            self._messages.append((D3D12_MESSAGE_SEVERITY.ERROR, "the desc is not valid"))
        if number in MESSAGES:
            self._messages.append(MESSAGES[number])
        return result

    def message(self, this: int, index: int, memory: int, size: int) -> int:
        severity, text = self._messages[index]
        content = text.encode() + b"\0"
        needed = ctypes.sizeof(D3D12_MESSAGE) + len(content)
        if memory:
            end = memory + ctypes.sizeof(D3D12_MESSAGE)
            ctypes.memmove(end, content, len(content))
            message = D3D12_MESSAGE(0, severity, 1000 + severity, end, len(content))
            ctypes.memmove(memory, ctypes.byref(message), ctypes.sizeof(message))
        ctypes.c_size_t.from_address(size).value = needed
        return 0


class SlowAdd:
    """Dispatches ELEMENT_WISE_ADD 5,000 times instead of once."""

    def __init__(self, device: Device) -> None:
        self._added: set[int] = set()
        self._slow: set[int] = set()
        flagged = (POINTER, ctypes.c_uint32, *NEW_OBJECT)
        replace_method(device.dml, "CreateOperator", (POINTER, *NEW_OBJECT), self.create)
        replace_method(device.dml, "CompileOperator", flagged, self.compile)
        record = (POINTER, POINTER, POINTER)
        replace_method(device.recorder, "RecordDispatch", record, self.record)

    def create(self, original: Hook, this: int, desc: int, iid: Any, new: Any) -> int:
        result = int(original(this, desc, iid, new))
        known = self._added.discard if result < 0 else self._added.add
        if ctypes.c_uint32.from_address(desc).value == ELEMENT_WISE_ADD:
            known(new[0])
        else:
            self._added.discard(new[0])
        return result

    def compile(
        self, original: Hook, this: int, operator: int, flags: int, iid: Any, new: Any
    ) -> int:
        result = int(original(this, operator, flags, iid, new))
        if operator in self._added:
            self._slow.add(new[0])
        else:
            self._slow.discard(new[0])
        return result

    def record(
        self, original: Hook, this: int, commands: int, dispatchable: int, table: int
    ) -> int:
        for _ in range(5000 if dispatchable in self._slow else 1):
            original(this, commands, dispatchable, table)
        return 0


def wrong_level(device: Device) -> None:
    """Claims one feature level less than DMLCreateDevice1 accepts."""

    def ask(
        original: Hook, this: int, feature: int, size: int, query: int, length: int, answer: int
    ) -> int:
        result = int(original(this, feature, size, query, length, answer))
        if feature == dml.DML_FEATURE.FEATURE_LEVELS and result >= 0:
            value = ctypes.c_uint32.from_address(answer)
            value.value = min(value.value, dml.FEATURE_LEVELS[-2])
        return result

    arguments = (ctypes.c_uint32, ctypes.c_uint32, POINTER, ctypes.c_uint32, POINTER)
    replace_method(device.dml, "CheckFeatureSupport", arguments, ask)


def leaking(device: Device) -> None:
    """Adds a reference to the ID3D12Device whenever an IDMLDevice is released."""

    def release(original: Hook, this: int) -> int:
        ComObject(dml.IDML_DEVICE, this).create("GetParentDevice", ID3D12_DEVICE)
        return int(original(this))

    replace_method(device.dml, "Release", (), release)


MESSAGES: Final = {
    ELEMENT_WISE_ADD: (D3D12_MESSAGE_SEVERITY.ERROR, "a buffer is in the wrong state"),
    ELEMENT_WISE_SUBTRACT: (D3D12_MESSAGE_SEVERITY.WARNING, "a barrier is superfluous"),
}

LAYERS: Final = {
    layer.__name__: layer
    for layer in (
        wrong_metacommand,
        wrong_half,
        wrong_graph,
        wrong_level,
        leaking,
        DebugLayer,
        SlowAdd,
    )
}


def install(name: str) -> None:
    libraries = load(None)
    with Adapters(libraries) as adapters:
        adapter = choose_adapter(None, adapters.found)
        device = Device(libraries, adapters.native(adapter))
    LAYERS[name](device)
    _alive.append(device)


if __name__ != "__main__":
    install(sys.argv[1])  # In a worker process.
else:
    from dmlconf.cli.entry_point import main

    main(sys.argv[2:])
