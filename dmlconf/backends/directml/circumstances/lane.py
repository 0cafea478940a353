"""A further queue of a device, with a list of its own: what runs on it need not be waited for."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Final

from dmlconf.backends.directml import d3d12, dml
from dmlconf.backends.directml.d3d12 import D3D12_COMMAND_LIST_TYPE
from dmlconf.backends.directml.device import Device
from dmlconf.backends.directml.hresult import HResultError
from dmlconf.backends.directml.vtable import ComObject, Interface

__all__ = ["Lane"]

_PATIENCE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.0002
_HUNG: Final = 0x887A_0006
"""DXGI_ERROR_DEVICE_HUNG."""


class Lane(Device):
    """A compute queue of another device's; it records as that does, and is submitted otherwise."""

    def __init__(self, device: Device) -> None:
        """Make the queue, the list, the fence and the recorder.

        Raises:
            HResultError: one of them cannot be made.
        """
        self._owned = ExitStack()
        self._recording = False
        self._submitted = 0
        self.d3d, self.dml = device.d3d, device.dml
        kind = D3D12_COMMAND_LIST_TYPE.COMPUTE
        desc = d3d12.D3D12_COMMAND_QUEUE_DESC(Type=kind)
        with ExitStack() as owned:

            def own(name: str, interface: Interface, *arguments: object) -> ComObject:
                return owned.enter_context(self.d3d.create(name, interface, *arguments))

            self.queue = own("CreateCommandQueue", d3d12.ID3D12_COMMAND_QUEUE, ctypes.byref(desc))
            self._allocator = own("CreateCommandAllocator", d3d12.ID3D12_COMMAND_ALLOCATOR, kind)
            self.commands = own(
                "CreateCommandList", d3d12.ID3D12_GRAPHICS_COMMAND_LIST,
                0, kind, self._allocator, None,
            )  # fmt: skip
            self.commands.call("Close")
            self._fence = own("CreateFence", d3d12.ID3D12_FENCE, 0, 0)
            recorder = self.dml.create("CreateCommandRecorder", dml.IDML_COMMAND_RECORDER)
            self.recorder = owned.enter_context(recorder)
            self._owned = owned.pop_all()

    def execute(self, after: Lane | None = None) -> None:
        """Give the queue what was recorded, to run once another lane's work is done.

        Args:
            after: the other lane; None where nothing is to be waited for.
        """
        self._recording = False
        self.commands.call("Close")
        if after is not None:
            self.queue.call("Wait", after._fence, after._submitted)
        lists = (ctypes.c_void_p * 1)(self.commands.address)
        self.queue.call("ExecuteCommandLists", 1, lists)
        self._submitted += 1
        self.queue.call("Signal", self._fence, self._submitted)

    def wait(self) -> None:
        """Wait until all that was executed is done.

        Raises:
            HResultError: the device was removed, or nothing came of it in a minute.
        """
        end = monotonic() + _PATIENCE_SECONDS
        while self._fence.call("GetCompletedValue") < self._submitted:
            if monotonic() > end:
                raise HResultError("GetCompletedValue", _HUNG)
            sleep(_POLL_SECONDS)
        self.check_removed()
