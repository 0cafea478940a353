"""Buffers and descriptors of a Direct3D 12 device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from dmlconf.backends.directml.api import d3d12, dml
from dmlconf.backends.directml.api.d3d12 import D3D12_HEAP_TYPE, D3D12_RESOURCE_STATES
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import ComObject

__all__ = ["LARGE_BYTES", "Buffer", "Buffers", "DescriptorHeap", "Region"]

LARGE_BYTES: Final = 1 << 26
"""Larger buffers have exactly the bytes that are needed; others have a power of two, for reuse."""

_LEAST_BYTES: Final = 1 << 22

_ALLOW_UNORDERED_ACCESS: Final = 4
_CBV_SRV_UAV: Final = 0
_DIMENSION_BUFFER: Final = 1
_LAYOUT_ROW_MAJOR: Final = 1
_SHADER_VISIBLE: Final = 1


class Buffer:
    """A buffer of the device.

    Attributes:
        resource: the ID3D12Resource.
        size: the size in bytes.
        memory: the address of the bytes; 0 if the CPU cannot access them.
    """

    def __init__(self, device: ComObject, size: int, kind: D3D12_HEAP_TYPE) -> None:
        """Create a buffer; upload and readback buffers stay mapped.

        Raises:
            HResultError: there is not enough memory, or the device is gone.
        """
        states = {
            D3D12_HEAP_TYPE.DEFAULT: D3D12_RESOURCE_STATES.COMMON,
            D3D12_HEAP_TYPE.UPLOAD: D3D12_RESOURCE_STATES.GENERIC_READ,
            D3D12_HEAP_TYPE.READBACK: D3D12_RESOURCE_STATES.COPY_DEST,
        }
        on_device = kind is D3D12_HEAP_TYPE.DEFAULT
        heap = d3d12.D3D12_HEAP_PROPERTIES(Type=kind)
        desc = d3d12.D3D12_RESOURCE_DESC(
            Dimension=_DIMENSION_BUFFER,
            Width=size,
            Height=1,
            DepthOrArraySize=1,
            MipLevels=1,
            SampleDesc=d3d12.DXGI_SAMPLE_DESC(1, 0),
            Layout=_LAYOUT_ROW_MAJOR,
            Flags=_ALLOW_UNORDERED_ACCESS if on_device else 0,
        )
        self.size = size
        self.memory = 0
        self.resource = device.create(
            "CreateCommittedResource",
            d3d12.ID3D12_RESOURCE,
            ctypes.byref(heap),
            0,
            ctypes.byref(desc),
            states[kind],
            None,
        )
        if not on_device:
            self._map()

    def _map(self) -> None:
        address = ctypes.c_void_p()
        try:
            self.resource.call("Map", 0, None, ctypes.byref(address))
        except HResultError:
            self.release()
            raise
        self.memory = address.value or 0

    def release(self) -> None:
        """Release the buffer."""
        self.resource.release()


class Buffers:
    """Buffers that are kept by name, and replaced by larger ones if they are too small."""

    def __init__(self, device: ComObject, first_bytes: int = _LEAST_BYTES) -> None:
        """Start with no buffers; each will have at least `first_bytes` bytes."""
        self._device = device
        self._first_bytes = first_bytes
        self._buffers: dict[str, Buffer] = {}

    def get(self, name: str, size: int, kind: D3D12_HEAP_TYPE) -> Buffer:
        """Return the buffer of that name, with at least `size` bytes.

        A smaller buffer of that name is released.

        Raises:
            HResultError: there is not enough memory, or the device is gone.
        """
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            if buffer is not None:
                self._buffers.pop(name).release()
            least = max(self._first_bytes, 1 << (size - 1).bit_length())
            capacity = size if size > LARGE_BYTES else least
            buffer = self._buffers[name] = Buffer(self._device, capacity, kind)
        return buffer

    def release(self) -> None:
        """Release all buffers."""
        while self._buffers:
            self._buffers.popitem()[1].release()


@dataclass(frozen=True, slots=True)
class Region:
    """`size` bytes of a buffer from `offset`."""

    buffer: Buffer
    offset: int
    size: int


class DescriptorHeap:
    """A heap of descriptors that shaders can see."""

    def __init__(self, device: ComObject, size: int) -> None:
        """Create a heap.

        Raises:
            HResultError: there is not enough memory, or the device is gone.
        """
        desc = d3d12.D3D12_DESCRIPTOR_HEAP_DESC(_CBV_SRV_UAV, size, _SHADER_VISIBLE, 0)
        self.size = size
        self.heap = device.create(
            "CreateDescriptorHeap", d3d12.ID3D12_DESCRIPTOR_HEAP, ctypes.byref(desc)
        )
        self._step: int = device.call("GetDescriptorHandleIncrementSize", _CBV_SRV_UAV)
        self._cpu: int = self.heap.call("GetCPUDescriptorHandleForHeapStart").ptr
        self._gpu: int = self.heap.call("GetGPUDescriptorHandleForHeapStart").ptr

    def table(self, dispatchable: ComObject, first: int, count: int) -> dml.DML_BINDING_TABLE_DESC:
        """Return the desc of a binding table over `count` descriptors from `first`."""
        return dml.DML_BINDING_TABLE_DESC(
            dispatchable.address,
            d3d12.D3D12_CPU_DESCRIPTOR_HANDLE(self._cpu + first * self._step),
            d3d12.D3D12_GPU_DESCRIPTOR_HANDLE(self._gpu + first * self._step),
            count,
        )

    def release(self) -> None:
        """Release the heap."""
        self.heap.release()
