"""Copy bound tensors into memory that the CPU can read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dmlconf.backends.directml.api import d3d12
from dmlconf.backends.directml.api.d3d12 import D3D12_HEAP_TYPE, D3D12_RESOURCE_STATES
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.barriers import change_states, wait_for_writes
from dmlconf.backends.directml.devices.memory import Buffer
from dmlconf.backends.directml.dispatch.placement import decode
from dmlconf.capture.hooking.slots import Range, Slot
from dmlconf.tensors.datatypes import Array

__all__ = ["Copies", "borrowed", "copying_list", "device_of"]

_ALIGNMENT: Final = 512
"""Each copy begins at a multiple of this many bytes."""


def borrowed(interface: object, address: int) -> ComObject:
    """Return an object that the application owns; the caller must not release it."""
    return ComObject(interface, address)  # type: ignore[arg-type]


def device_of(child: ComObject) -> ComObject:
    """Return the ID3D12Device of an object; the caller must release it."""
    return child.create("GetDevice", d3d12.ID3D12_DEVICE)


@dataclass(slots=True)
class Copies:
    """Tensors that are copied together.

    Attributes:
        parts: each tensor that has bytes, with its part of a buffer.
        starts: the offset of each copy in `buffer`.
    """

    parts: Sequence[tuple[Slot, Range]]
    buffer: Buffer
    starts: Sequence[int] = field(default_factory=tuple)

    @classmethod
    def of(cls, device: ComObject, parts: Iterable[tuple[Slot, Range]]) -> Copies | None:
        """Allocate memory for copies of tensors; return None if no tensor has bytes.

        Raises:
            HResultError: there is not enough memory.
        """
        filled = [(slot, bound) for slot, bound in parts if slot.tensor.TotalTensorSizeInBytes]
        starts, size = [], 0
        for slot, _ in filled:
            starts.append(size)
            size += -(-slot.tensor.TotalTensorSizeInBytes // _ALIGNMENT) * _ALIGNMENT
        if not filled:
            return None
        return cls(filled, Buffer(device, size, D3D12_HEAP_TYPE.READBACK), starts)

    def record(self, commands: ComObject, *, in_use: bool) -> None:
        """Record the commands that copy.

        Args:
            in_use: whether `commands` is the application's list, in which buffers on the device are
                in the state UNORDERED_ACCESS.
        """
        moved = sorted({bound.buffer for _, bound in self.parts if _on_device(bound.buffer)})
        read, written = D3D12_RESOURCE_STATES.COPY_SOURCE, D3D12_RESOURCE_STATES.UNORDERED_ACCESS
        if in_use:
            wait_for_writes(commands)
            change_states(commands, moved, written, read)
        for (slot, bound), start in zip(self.parts, self.starts, strict=True):
            size = slot.tensor.TotalTensorSizeInBytes
            commands.call(
                "CopyBufferRegion", self.buffer.resource, start, bound.buffer, bound.offset, size
            )
        if in_use:
            change_states(commands, moved, read, written)

    def hold(self) -> Iterator[ComObject]:
        """Yield a new reference, for the caller to release, to each buffer that is copied from."""
        for buffer in {bound.buffer for _, bound in self.parts}:
            resource = borrowed(d3d12.ID3D12_RESOURCE, buffer)
            resource.call("AddRef")
            yield resource

    def arrays(self) -> Mapping[str, Array]:
        """Return the elements of the tensors by name, after the list has run."""
        result = {}
        for (slot, _), start in zip(self.parts, self.starts, strict=True):
            size = slot.tensor.TotalTensorSizeInBytes
            content = ctypes.string_at(self.buffer.memory + start, size)
            result[slot.name] = decode(slot.tensor, np.frombuffer(content, np.uint8))
        return result

    def release(self) -> None:
        """Release the memory, when no list that copies into it can still run."""
        self.buffer.release()


def _on_device(buffer: int) -> bool:
    """Return whether a buffer can change its state; in upload and readback heaps it cannot."""
    properties = d3d12.D3D12_HEAP_PROPERTIES()
    resource = borrowed(d3d12.ID3D12_RESOURCE, buffer)
    resource.call("GetHeapProperties", ctypes.byref(properties), None)
    return int(properties.Type) not in (D3D12_HEAP_TYPE.UPLOAD, D3D12_HEAP_TYPE.READBACK)


@contextmanager
def copying_list(device: ComObject, like: ComObject, copies: Copies) -> Iterator[ComObject]:
    """Yield a closed command list, of the type of `like`, that copies; run it inside `with`."""
    kind = like.call("GetType")
    with ExitStack() as owner:
        allocator = owner.enter_context(
            device.create("CreateCommandAllocator", d3d12.ID3D12_COMMAND_ALLOCATOR, kind)
        )
        commands = owner.enter_context(
            device.create(
                "CreateCommandList",
                d3d12.ID3D12_GRAPHICS_COMMAND_LIST,
                0,
                kind,
                allocator,
                None,
            )
        )
        copies.record(commands, in_use=False)
        commands.call("Close")
        yield commands
