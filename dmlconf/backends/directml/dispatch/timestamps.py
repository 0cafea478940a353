"""Measure how long dispatches take, by the device's own clock."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from typing import Final

from dmlconf.backends.directml.api import d3d12
from dmlconf.backends.directml.api.d3d12 import (
    D3D12_HEAP_TYPE,
    D3D12_QUERY_HEAP_TYPE,
    D3D12_QUERY_TYPE,
)
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.memory import Buffer

__all__ = ["Timestamps"]

_TICK_BYTES: Final = 8


class Timestamps:
    """Timestamps taken by a command list; none if the device has no clock."""

    def __init__(self, device: ComObject, queue: ComObject) -> None:
        """Ask the queue for its clock; `device` is the ID3D12Device."""
        self._device = device
        self._owned = ExitStack()
        self._size = 0
        frequency = ctypes.c_uint64()
        try:
            queue.call("GetTimestampFrequency", ctypes.byref(frequency))
        except HResultError:
            frequency.value = 0
        self._frequency = frequency.value

    def close(self) -> None:
        """Release the memory."""
        self._owned.close()
        self._size = 0

    def make_room(self, count: int) -> None:
        """Allocate memory for this many timestamps.

        A device that cannot allocate it counts as one without a clock.
        """
        if not self._frequency or count <= self._size:
            return
        self.close()
        size = 1 << (count - 1).bit_length()
        desc = d3d12.D3D12_QUERY_HEAP_DESC(D3D12_QUERY_HEAP_TYPE.TIMESTAMP, size, 0)
        try:
            heap = self._device.create(
                "CreateQueryHeap", d3d12.ID3D12_QUERY_HEAP, ctypes.byref(desc)
            )
            self._heap = self._owned.enter_context(heap)
            buffer = Buffer(self._device, size * _TICK_BYTES, D3D12_HEAP_TYPE.READBACK)
        except HResultError:
            self.close()
            self._frequency = 0
            return
        self._owned.callback(buffer.release)
        self._buffer = buffer
        self._size = size

    def take(self, commands: ComObject, index: int) -> None:
        """Record a timestamp, taken when everything recorded before it is done."""
        if self._frequency:
            commands.call("EndQuery", self._heap, D3D12_QUERY_TYPE.TIMESTAMP, index)

    def collect(self, commands: ComObject, count: int) -> None:
        """Record a copy of the first `count` timestamps to a buffer that can be read."""
        if self._frequency:
            commands.call(
                "ResolveQueryData",
                self._heap,
                D3D12_QUERY_TYPE.TIMESTAMP,
                0,
                count,
                self._buffer.resource,
                0,
            )

    def seconds(self, count: int) -> list[float]:
        """Return the seconds from timestamp 0 to 1, from 2 to 3, and so on.

        `count` is the number of timestamps, even and at least 2. The list is empty if there is no
        clock, or if the clock went backwards within a pair.
        """
        if not self._frequency:
            return []
        ticks = (ctypes.c_uint64 * count).from_address(self._buffer.memory)
        pairs = [after - before for before, after in zip(ticks[0::2], ticks[1::2], strict=True)]
        return [elapsed / self._frequency for elapsed in pairs] if min(pairs) >= 0 else []
