"""Transfer bytes to and from the device in pieces, which takes less memory."""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

from dmlconf.backends.directml.api.d3d12 import D3D12_RESOURCE_STATES
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.devices.memory import Buffer, DescriptorHeap
from dmlconf.tensors.datatypes import Array

__all__ = ["STAGED_BYTES", "Staging", "mapped"]

STAGED_BYTES: Final = 1 << 24
"""Maximum bytes of one piece."""

_States = D3D12_RESOURCE_STATES


class Staging:
    """Copies to and from buffers of the device that are in the state COMMON.

    `HResultError` is raised if a call fails or the device is gone.
    """

    def __init__(self, device: Device, heap: DescriptorHeap, upload: Buffer, back: Buffer) -> None:
        """Use two mapped buffers of `STAGED_BYTES` or more, one for each direction."""
        self._device, self._heap = device, heap
        self._upload, self._back = upload, back

    def upload(self, target: Buffer, content: Array) -> None:
        """Write bytes to the start of a buffer."""
        for start in range(0, len(content), STAGED_BYTES):
            part = content[start : start + STAGED_BYTES]
            ctypes.memmove(self._upload.memory, part.ctypes.data, len(part))
            self._device.begin(self._heap)
            self._device.change([target], _States.COMMON, _States.COPY_DEST)
            self._device.copy(target, start, self._upload, 0, len(part))
            self._device.change([target], _States.COPY_DEST, _States.COMMON)
            self._device.submit()

    def download(self, source: Buffer, into: Array) -> None:
        """Read bytes from the start of a buffer."""
        for start in range(0, len(into), STAGED_BYTES):
            part = into[start : start + STAGED_BYTES]
            self._device.begin(self._heap)
            self._device.change([source], _States.COMMON, _States.COPY_SOURCE)
            self._device.copy(self._back, 0, source, start, len(part))
            self._device.change([source], _States.COPY_SOURCE, _States.COMMON)
            self._device.submit()
            ctypes.memmove(part.ctypes.data, self._back.memory, len(part))


def mapped(buffer: Buffer, size: int) -> Array:
    """Return the first `size` bytes of a mapped buffer, UINT8, as a view of its memory."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(buffer.memory))
