"""A plugin: real DirectML, whose device or process is damaged before a chosen batch.

`saboteur:ACTION,PART` acts before a batch with a case whose identifier contains PART.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Iterator, Sequence

from dmlconf.backends.directml.api.d3d12 import (
    D3D12_COMMAND_LIST_TYPE,
    ID3D12_COMMAND_ALLOCATOR,
    ID3D12_COMMAND_QUEUE,
    ID3D12_FENCE,
    ID3D12_GRAPHICS_COMMAND_LIST,
)
from dmlconf.backends.directml.api.vtable import ComObject, prototype
from dmlconf.backends.directml.backend import create as create_directml
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.protocol import Capabilities, Environment, Outcome
from dmlconf.cases.model import Case


def remove_device() -> None:
    """Submit commands that are not closed, for which Direct3D removes the device."""
    device = live_device()
    kind = D3D12_COMMAND_LIST_TYPE.DIRECT
    allocator = device.d3d.create("CreateCommandAllocator", ID3D12_COMMAND_ALLOCATOR, kind)
    commands = device.d3d.create(
        "CreateCommandList", ID3D12_GRAPHICS_COMMAND_LIST, 0, kind, allocator, None
    )
    lists = (ctypes.c_void_p * 1)(commands.address)
    device.queue.call("ExecuteCommandLists", 1, lists)


def block_queue() -> None:
    """Let the queue wait for a fence that nothing signals."""
    device = live_device()
    fence = device.d3d.create("CreateFence", ID3D12_FENCE, 0, 0)
    slot, _ = ID3D12_COMMAND_QUEUE.slots["Wait"]
    wait = prototype(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    assert wait(entry(device.queue, slot))(device.queue.address, fence.address, 1) >= 0


def sleep_for_hours() -> None:
    time.sleep(3600)


def jump_nowhere() -> None:
    """Start a thread at an address without code, which ends the process."""
    print("about to jump", file=sys.stderr, flush=True)
    kernel = ctypes.CDLL("kernel32.dll")
    kernel.CreateThread(None, ctypes.c_size_t(0), ctypes.c_void_p(1), None, 0, None)
    time.sleep(60)


def live_device() -> Device:
    return next(object_ for object_ in gc.get_objects() if isinstance(object_, Device))


def entry(com: ComObject, slot: int) -> int:
    """Return the address of a method by its slot in the vtable."""
    table = ctypes.c_void_p.from_address(com.address).value or 0
    return ctypes.c_void_p.from_address(table + slot * ctypes.sizeof(ctypes.c_void_p)).value or 0


ACTIONS = {
    action.__name__: action
    for action in (remove_device, block_queue, sleep_for_hours, jump_nowhere)
}


class Saboteur:
    def __init__(self, options: str) -> None:
        name, _, self._part = options.partition(",")
        self._action = ACTIONS[name]
        self._directml = create_directml("")

    def environment(self) -> Environment:
        return self._directml.environment()

    def capabilities(self) -> Capabilities:
        return self._directml.capabilities()

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        if any(self._part in case.identifier for case in cases):
            self._action()
        return self._directml.run(cases)

    def limit_waits(self, seconds: float) -> None:
        self._directml.limit_waits(seconds)

    def close(self) -> None:
        self._directml.close()


def create(options: str) -> Saboteur:
    return Saboteur(options)
