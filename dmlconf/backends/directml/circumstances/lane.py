"""An additional queue of a device with its own command list."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack

from dmlconf.backends.directml.api import d3d12, dml
from dmlconf.backends.directml.api.d3d12 import D3D12_COMMAND_LIST_TYPE
from dmlconf.backends.directml.api.vtable import ComObject, Interface
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.devices.fence import Fence

__all__ = ["Lane"]


class Lane(Device):
    """A compute queue of an existing device."""

    def __init__(self, device: Device) -> None:
        """Create the queue and what it needs.

        Raises:
            HResultError: a part cannot be created.
        """
        self._owned = ExitStack()
        self._recording = False
        self.d3d, self.dml, self.limit = device.d3d, device.dml, device.limit
        kind = D3D12_COMMAND_LIST_TYPE.COMPUTE
        desc = d3d12.D3D12_COMMAND_QUEUE_DESC(Type=kind)
        with ExitStack() as owned:

            def own(name: str, interface: Interface, *arguments: object) -> ComObject:
                return owned.enter_context(self.d3d.create(name, interface, *arguments))

            self.queue = own("CreateCommandQueue", d3d12.ID3D12_COMMAND_QUEUE, ctypes.byref(desc))
            self._allocator = own("CreateCommandAllocator", d3d12.ID3D12_COMMAND_ALLOCATOR, kind)
            self.commands = own(
                "CreateCommandList",
                d3d12.ID3D12_GRAPHICS_COMMAND_LIST,
                0,
                kind,
                self._allocator,
                None,
            )
            self.commands.call("Close")
            self.fence = Fence(self.d3d, self.queue, self.limit)
            owned.callback(self.fence.release)
            recorder = self.dml.create("CreateCommandRecorder", dml.IDML_COMMAND_RECORDER)
            self.recorder = owned.enter_context(recorder)
            self._owned = owned.pop_all()
