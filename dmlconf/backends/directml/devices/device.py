"""One Direct3D 12 device with its queue and command list, and the DirectML device on it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

from dmlconf.backends.directml.api import d3d12, dml
from dmlconf.backends.directml.api.d3d12 import (
    D3D12_COMMAND_LIST_TYPE,
    D3D12_RESOURCE_STATES,
    D3D_FEATURE_LEVEL,
)
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import Libraries, function
from dmlconf.backends.directml.api.sdklayers import ID3D12_DEBUG
from dmlconf.backends.directml.api.structs import data_type_value
from dmlconf.backends.directml.api.vtable import (
    NEW_OBJECT,
    ComObject,
    Interface,
    NativeCrashError,
    new_object,
)
from dmlconf.backends.directml.devices.barriers import change_states, wait_for_writes
from dmlconf.backends.directml.devices.fence import Fence, WaitLimit
from dmlconf.backends.directml.devices.memory import Buffer, DescriptorHeap
from dmlconf.backends.directml.devices.messages import InfoQueue
from dmlconf.backends.protocol import BackendError, Capabilities
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import DataType

__all__ = ["Device", "create_dml"]

POINTER: Final = ctypes.c_void_p


class Device:
    """A device that records commands, submits them, and waits.

    Attributes:
        d3d: the ID3D12Device.
        dml: the IDMLDevice.
        recorder: the IDMLCommandRecorder.
        queue: the ID3D12CommandQueue.
        commands: the ID3D12GraphicsCommandList.
        fence: says when the queue's work is done.
        limit: how long a submission may take; once one took longer, the device cannot be used.
        messages: messages of the debug layers; None if no layer was requested or is active.
        missing_layers: requested debug layers that are not available, and why.
    """

    def __init__(self, libraries: Libraries, adapter: ComObject, *, debug: bool = False) -> None:
        """Open the device; `debug` turns on the debug layers of Direct3D and DirectML.

        Raises:
            BackendError: the device cannot be opened.
        """
        self._owned = ExitStack()
        self._recording = False
        self.limit = WaitLimit()
        self.messages: InfoQueue | None = None
        self.missing_layers: tuple[str, ...] = ()
        try:
            self._open(libraries, adapter, debug)
        except (HResultError, NativeCrashError) as error:
            self.close()
            raise BackendError(f"the device cannot be opened: {error}") from error
        except BaseException:
            self.close()
            raise

    def _open(self, libraries: Libraries, adapter: ComObject, debug: bool) -> None:
        if debug:
            self._enable_debug_layer(libraries)
        self.d3d, kind = self._create_d3d(libraries, adapter)
        self._kind = kind
        if debug:
            self.messages = InfoQueue.of(self.d3d)
        if self.messages is not None:
            self._owned.callback(self.messages.release)
        queue_desc = d3d12.D3D12_COMMAND_QUEUE_DESC(Type=kind)
        self.queue = self._own(
            "CreateCommandQueue", d3d12.ID3D12_COMMAND_QUEUE, ctypes.byref(queue_desc)
        )
        self._allocator = self._own("CreateCommandAllocator", d3d12.ID3D12_COMMAND_ALLOCATOR, kind)
        self.commands = self._own(
            "CreateCommandList", d3d12.ID3D12_GRAPHICS_COMMAND_LIST, 0, kind, self._allocator, None
        )
        self.commands.call("Close")
        self.fence = Fence(self.d3d, self.queue, self.limit)
        self._owned.callback(self.fence.release)
        self.dml = self._owned.enter_context(self._create_dml(libraries, debug))
        recorder = self.dml.create("CreateCommandRecorder", dml.IDML_COMMAND_RECORDER)
        self.recorder = self._owned.enter_context(recorder)

    def _create_dml(self, libraries: Libraries, debug: bool) -> ComObject:
        lowest = dml.FEATURE_LEVELS[0]
        if debug:
            try:
                return create_dml(libraries, self.d3d, lowest, dml.DML_CREATE_DEVICE_FLAGS.DEBUG)
            except HResultError as error:
                self.missing_layers += (
                    f"DirectML's ({error}): it needs DirectML.Debug.dll next to DirectML.dll",
                )
        return create_dml(libraries, self.d3d, lowest)

    def _enable_debug_layer(self, libraries: Libraries) -> None:
        get = function(libraries.d3d12, "D3D12GetDebugInterface", *NEW_OBJECT)
        try:
            with new_object("D3D12GetDebugInterface", get, ID3D12_DEBUG) as layer:
                layer.call("EnableDebugLayer")
        except HResultError as error:
            self.missing_layers += (
                f"Direct3D 12's ({error}): it needs the Windows feature Graphics Tools",
            )

    def _create_d3d(
        self, libraries: Libraries, adapter: ComObject
    ) -> tuple[ComObject, D3D12_COMMAND_LIST_TYPE]:
        """Return a device and the type of its queue, which is COMPUTE for one without graphics."""
        create = function(
            libraries.d3d12, "D3D12CreateDevice", POINTER, ctypes.c_uint32, *NEW_OBJECT
        )
        levels = (
            (D3D_FEATURE_LEVEL.LEVEL_11_0, D3D12_COMMAND_LIST_TYPE.DIRECT),
            (D3D_FEATURE_LEVEL.CORE_1_0, D3D12_COMMAND_LIST_TYPE.COMPUTE),
            (D3D_FEATURE_LEVEL.GENERIC_1_0, D3D12_COMMAND_LIST_TYPE.COMPUTE),
        )
        refusal: HResultError | None = None
        for level, kind in levels:
            try:
                device = new_object(
                    "D3D12CreateDevice", create, d3d12.ID3D12_DEVICE, adapter, level
                )
            except HResultError as error:
                refusal = refusal or error
            else:
                return self._owned.enter_context(device), kind
        assert refusal is not None
        raise refusal

    def _own(self, name: str, interface: Interface, *arguments: Any) -> ComObject:
        return self._owned.enter_context(self.d3d.create(name, interface, *arguments))

    def close(self) -> None:
        """Release the device and everything that belongs to it.

        A device that hangs is kept: releasing a busy queue may block forever.
        """
        if self.limit.exceeded:
            self._owned.pop_all()
        self._owned.close()

    def capabilities(self) -> Capabilities:
        """Ask DirectML for its highest feature level and its data types.

        Raises:
            HResultError: DirectML does not tell the level, for example of a removed device.
        """
        supported = frozenset(t for t in DataType if self._supports(t))
        return Capabilities(self._highest_level(), supported)

    def _highest_level(self) -> FeatureLevel:
        highest = self.highest_of(dml.FEATURE_LEVELS)
        return FeatureLevel(highest >> 12, highest >> 8 & 0xF)

    def highest_of(self, asked: Sequence[int]) -> int:
        """Return the highest feature level among `asked` that DirectML supports."""
        levels = (ctypes.c_uint32 * len(asked))(*asked)
        query = dml.DML_FEATURE_QUERY_FEATURE_LEVELS(len(levels), ctypes.addressof(levels))
        answer = dml.DML_FEATURE_DATA_FEATURE_LEVELS()
        self.ask(dml.DML_FEATURE.FEATURE_LEVELS, query, answer)
        return int(answer.MaxSupportedFeatureLevel)

    def _supports(self, data_type: DataType) -> bool:
        query = dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(data_type_value(data_type))
        answer = dml.DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT()
        try:
            self.ask(dml.DML_FEATURE.TENSOR_DATA_TYPE_SUPPORT, query, answer)
        except HResultError:
            # An older DirectML does not know the 4-bit types.
            return False
        return bool(answer.IsSupported)

    def ask(
        self, feature: dml.DML_FEATURE, query: ctypes.Structure, answer: ctypes.Structure
    ) -> None:
        """Call CheckFeatureSupport, which fills the answer or raises `HResultError`."""
        sizes = ctypes.sizeof(query), ctypes.sizeof(answer)
        self.dml.call(
            "CheckFeatureSupport",
            feature,
            sizes[0],
            ctypes.byref(query),
            sizes[1],
            ctypes.byref(answer),
        )

    def begin(self, heap: DescriptorHeap) -> None:
        """Empty the command list and start to record; dispatches will use the heap."""
        if self._recording:
            # The previous list was not submitted because of an exception.
            with suppress(HResultError):
                self.commands.call("Close")
        self._recording = True
        self._allocator.call("Reset")
        self.commands.call("Reset", self._allocator, None)
        heaps = (POINTER * 1)(heap.heap.address)
        self.commands.call("SetDescriptorHeaps", 1, heaps)

    def copy(self, target: Buffer, at: int, source: Buffer, start: int, size: int) -> None:
        """Record a copy of `size` bytes from offset `start` of a buffer to `at` of another."""
        self.commands.call("CopyBufferRegion", target.resource, at, source.resource, start, size)

    def change(
        self,
        buffers: Sequence[Buffer],
        before: D3D12_RESOURCE_STATES,
        after: D3D12_RESOURCE_STATES,
    ) -> None:
        """Record a state transition of buffers."""
        change_states(self.commands, [each.resource.address for each in buffers], before, after)

    def dispatch(self, dispatchable: ComObject, table: ComObject) -> None:
        """Record a dispatch, and a barrier for its writes."""
        self.recorder.call("RecordDispatch", self.commands, dispatchable, table)
        wait_for_writes(self.commands)

    def submit(self) -> None:
        """Run what was recorded, and wait until it is done.

        Raises:
            HResultError: the list cannot be closed, or the device was removed.
            FenceTimeoutError: the work takes longer than the limit.
        """
        self.execute()
        self.wait()

    def execute(self) -> None:
        """Submit what was recorded to the queue.

        Raises:
            HResultError: the list cannot be closed, or the device was removed.
        """
        self._recording = False
        self.commands.call("Close")
        lists = (POINTER * 1)(self.commands.address)
        self.queue.call("ExecuteCommandLists", 1, lists)
        self.fence.signal()

    def wait(self) -> None:
        """Wait until all submitted work is done.

        Raises:
            HResultError: the device was removed.
            FenceTimeoutError: the work takes longer than the limit.
        """
        self.fence.wait()
        self.check_removed()

    def submit_open_list(self) -> None:
        """Submit a command list that is not closed, so that Direct3D removes the device."""
        with (
            self.d3d.create(
                "CreateCommandAllocator", d3d12.ID3D12_COMMAND_ALLOCATOR, self._kind
            ) as allocator,
            self.d3d.create(
                "CreateCommandList",
                d3d12.ID3D12_GRAPHICS_COMMAND_LIST,
                0,
                self._kind,
                allocator,
                None,
            ) as commands,
        ):
            lists = (POINTER * 1)(commands.address)
            self.queue.call("ExecuteCommandLists", 1, lists)

    def check_removed(self) -> None:
        """Raise `HResultError` if the ID3D12Device or the IDMLDevice was removed."""
        self.d3d.call("GetDeviceRemovedReason")
        self.dml.call("GetDeviceRemovedReason")


def create_dml(
    libraries: Libraries,
    d3d: ComObject,
    minimum: int,
    flags: dml.DML_CREATE_DEVICE_FLAGS = dml.DML_CREATE_DEVICE_FLAGS.NONE,
) -> ComObject:
    """Return a new IDMLDevice, which the caller must release.

    Args:
        d3d: the ID3D12Device.
        minimum: the DML_FEATURE_LEVEL that the device must at least support.
        flags: DEBUG for the debug layer.

    Raises:
        HResultError: the device cannot be created.
        NativeCrashError: the call crashed.
    """
    create = function(
        libraries.directml,
        "DMLCreateDevice1",
        POINTER,
        ctypes.c_uint32,
        ctypes.c_uint32,
        *NEW_OBJECT,
    )
    return new_object("DMLCreateDevice1", create, dml.IDML_DEVICE, d3d, flags, minimum)
