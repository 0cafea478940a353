"""Declarations of d3d12.h, and of headers that it includes, as far as dmlconf uses them."""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag
from typing import Final

from dmlconf.backends.directml.api.vtable import IUNKNOWN, NEW_OBJECT, Interface, Method, uncalled

__all__ = [
    "D3D12_COMMAND_LIST_TYPE",
    "D3D12_COMMAND_QUEUE_DESC",
    "D3D12_CPU_DESCRIPTOR_HANDLE",
    "D3D12_DESCRIPTOR_HEAP_DESC",
    "D3D12_GPU_DESCRIPTOR_HANDLE",
    "D3D12_HEAP_PROPERTIES",
    "D3D12_HEAP_TYPE",
    "D3D12_QUERY_HEAP_DESC",
    "D3D12_QUERY_HEAP_TYPE",
    "D3D12_QUERY_TYPE",
    "D3D12_RESOURCE_BARRIER",
    "D3D12_RESOURCE_DESC",
    "D3D12_RESOURCE_STATES",
    "D3D12_RESOURCE_TRANSITION_BARRIER",
    "D3D_FEATURE_LEVEL",
    "DXGI_SAMPLE_DESC",
    "ID3D12_COMMAND_ALLOCATOR",
    "ID3D12_COMMAND_LIST",
    "ID3D12_COMMAND_QUEUE",
    "ID3D12_DESCRIPTOR_HEAP",
    "ID3D12_DEVICE",
    "ID3D12_DEVICE5",
    "ID3D12_DEVICE_CHILD",
    "ID3D12_FENCE",
    "ID3D12_GRAPHICS_COMMAND_LIST",
    "ID3D12_OBJECT",
    "ID3D12_PAGEABLE",
    "ID3D12_QUERY_HEAP",
    "ID3D12_RESOURCE",
    "LUID",
]

UINT: Final = ctypes.c_uint32
UINT64: Final = ctypes.c_uint64
SIZE_T: Final = ctypes.c_size_t
POINTER: Final = ctypes.c_void_p


class D3D_FEATURE_LEVEL(IntEnum):
    """Minimum capabilities of a Direct3D device."""

    GENERIC_1_0 = 0x100
    CORE_1_0 = 0x1000
    LEVEL_11_0 = 0xB000


class D3D12_COMMAND_LIST_TYPE(IntEnum):
    """Types of command lists."""

    DIRECT = 0
    COMPUTE = 2


class D3D12_HEAP_TYPE(IntEnum):
    """Types of heaps, in which resources lie."""

    DEFAULT = 1
    UPLOAD = 2
    READBACK = 3


class D3D12_QUERY_HEAP_TYPE(IntEnum):
    """Types of query heaps."""

    TIMESTAMP = 1


class D3D12_QUERY_TYPE(IntEnum):
    """Types of queries."""

    TIMESTAMP = 2


class D3D12_RESOURCE_STATES(IntFlag):
    """States of a resource."""

    COMMON = 0
    UNORDERED_ACCESS = 0x8
    COPY_DEST = 0x400
    COPY_SOURCE = 0x800
    GENERIC_READ = 0xAC3


class LUID(ctypes.Structure):
    """A number that identifies an adapter until the machine restarts."""

    _fields_ = (("LowPart", ctypes.c_uint32), ("HighPart", ctypes.c_int32))


class D3D12_COMMAND_QUEUE_DESC(ctypes.Structure):
    """The description of a command queue."""

    _fields_ = (("Type", UINT), ("Priority", ctypes.c_int32), ("Flags", UINT), ("NodeMask", UINT))


class D3D12_DESCRIPTOR_HEAP_DESC(ctypes.Structure):
    """The description of a descriptor heap."""

    _fields_ = (("Type", UINT), ("NumDescriptors", UINT), ("Flags", UINT), ("NodeMask", UINT))


class D3D12_QUERY_HEAP_DESC(ctypes.Structure):
    """The description of a query heap."""

    _fields_ = (("Type", UINT), ("Count", UINT), ("NodeMask", UINT))


class D3D12_CPU_DESCRIPTOR_HANDLE(ctypes.Structure):
    """The address of a descriptor for the CPU."""

    _fields_ = (("ptr", SIZE_T),)


class D3D12_GPU_DESCRIPTOR_HANDLE(ctypes.Structure):
    """The address of a descriptor for the GPU."""

    _fields_ = (("ptr", UINT64),)


class D3D12_HEAP_PROPERTIES(ctypes.Structure):
    """The properties of a resource's heap."""

    _fields_ = (
        ("Type", UINT),
        ("CPUPageProperty", UINT),
        ("MemoryPoolPreference", UINT),
        ("CreationNodeMask", UINT),
        ("VisibleNodeMask", UINT),
    )


class DXGI_SAMPLE_DESC(ctypes.Structure):
    """The number and the quality of a texture's samples."""

    _fields_ = (("Count", UINT), ("Quality", UINT))


class D3D12_RESOURCE_DESC(ctypes.Structure):
    """The description of a resource."""

    _fields_ = (
        ("Dimension", UINT),
        ("Alignment", UINT64),
        ("Width", UINT64),
        ("Height", UINT),
        ("DepthOrArraySize", ctypes.c_uint16),
        ("MipLevels", ctypes.c_uint16),
        ("Format", UINT),
        ("SampleDesc", DXGI_SAMPLE_DESC),
        ("Layout", UINT),
        ("Flags", UINT),
    )


class D3D12_RESOURCE_TRANSITION_BARRIER(ctypes.Structure):
    """A state transition of a resource."""

    _fields_ = (
        ("pResource", POINTER),
        ("Subresource", UINT),
        ("StateBefore", UINT),
        ("StateAfter", UINT),
    )


class D3D12_RESOURCE_BARRIER(ctypes.Structure):
    """A barrier; the header's union has only its largest member here, `Transition`."""

    _fields_ = (("Type", UINT), ("Flags", UINT), ("Transition", D3D12_RESOURCE_TRANSITION_BARRIER))


ID3D12_OBJECT: Final = Interface(
    "ID3D12Object",
    "c4fec28f-7966-4e95-9f94-f431cb56c3b8",
    IUNKNOWN,
    uncalled("GetPrivateData SetPrivateData SetPrivateDataInterface SetName"),
)

ID3D12_DEVICE_CHILD: Final = Interface(
    "ID3D12DeviceChild",
    "905db94b-a00c-4140-9df5-2b64ca9ea357",
    ID3D12_OBJECT,
    (Method("GetDevice", NEW_OBJECT),),
)

ID3D12_PAGEABLE: Final = Interface(
    "ID3D12Pageable", "63ee58fb-1268-4835-86da-f008ce62f0d6", ID3D12_DEVICE_CHILD
)

ID3D12_DEVICE: Final = Interface(
    "ID3D12Device",
    "189819f1-1db6-4b57-be54-1821339b85f7",
    ID3D12_OBJECT,
    (
        Method("GetNodeCount", (), UINT),
        Method("CreateCommandQueue", (POINTER, *NEW_OBJECT)),
        Method("CreateCommandAllocator", (UINT, *NEW_OBJECT)),
        *uncalled("CreateGraphicsPipelineState CreateComputePipelineState"),
        Method("CreateCommandList", (UINT, UINT, POINTER, POINTER, *NEW_OBJECT)),
        Method("CheckFeatureSupport", (UINT, POINTER, UINT)),
        Method("CreateDescriptorHeap", (POINTER, *NEW_OBJECT)),
        Method("GetDescriptorHandleIncrementSize", (UINT,), UINT),
        *uncalled(
            "CreateRootSignature CreateConstantBufferView CreateShaderResourceView "
            "CreateUnorderedAccessView CreateRenderTargetView CreateDepthStencilView CreateSampler "
            "CopyDescriptors CopyDescriptorsSimple GetResourceAllocationInfo "
            "GetCustomHeapProperties"
        ),
        Method(
            "CreateCommittedResource",
            (POINTER, UINT, POINTER, UINT, POINTER, *NEW_OBJECT),
        ),
        *uncalled(
            "CreateHeap CreatePlacedResource CreateReservedResource CreateSharedHandle "
            "OpenSharedHandle OpenSharedHandleByName"
        ),
        Method("MakeResident", (UINT, POINTER)),
        Method("Evict", (UINT, POINTER)),
        Method("CreateFence", (UINT64, UINT, *NEW_OBJECT)),
        Method("GetDeviceRemovedReason", ()),
        *uncalled("GetCopyableFootprints"),
        Method("CreateQueryHeap", (POINTER, *NEW_OBJECT)),
        *uncalled("SetStablePowerState CreateCommandSignature GetResourceTiling"),
        Method("GetAdapterLuid", (), LUID),
    ),
)

ID3D12_DEVICE5: Final = Interface(
    "ID3D12Device5",
    "8b4f173b-2fea-4b80-8f58-4307191ab95d",
    ID3D12_DEVICE,
    (
        *uncalled(
            "CreatePipelineLibrary SetEventOnMultipleFenceCompletion SetResidencyPriority "
            "CreatePipelineState OpenExistingHeapFromAddress OpenExistingHeapFromFileMapping "
            "EnqueueMakeResident CreateCommandList1 CreateProtectedResourceSession "
            "CreateCommittedResource1 CreateHeap1 CreateReservedResource1 "
            "GetResourceAllocationInfo1 CreateLifetimeTracker"
        ),
        Method("RemoveDevice", (), None),
        *uncalled(
            "EnumerateMetaCommands EnumerateMetaCommandParameters CreateMetaCommand "
            "CreateStateObject GetRaytracingAccelerationStructurePrebuildInfo "
            "CheckDriverMatchingIdentifier"
        ),
    ),
)
"""ID3D12Device5; its own methods follow those of ID3D12Device1 to 4, which are listed here, too."""

ID3D12_COMMAND_QUEUE: Final = Interface(
    "ID3D12CommandQueue",
    "0ec870a6-5d7e-4c22-8cfc-5baae07616ed",
    ID3D12_PAGEABLE,
    (
        *uncalled("UpdateTileMappings CopyTileMappings"),
        Method("ExecuteCommandLists", (UINT, POINTER), None),
        *uncalled("SetMarker BeginEvent EndEvent"),
        Method("Signal", (POINTER, UINT64)),
        Method("Wait", (POINTER, UINT64)),
        Method("GetTimestampFrequency", (ctypes.POINTER(UINT64),)),
        *uncalled("GetClockCalibration GetDesc"),
    ),
)

ID3D12_COMMAND_ALLOCATOR: Final = Interface(
    "ID3D12CommandAllocator",
    "6102dee4-af59-4b09-b999-b44d73f09b24",
    ID3D12_PAGEABLE,
    (Method("Reset", ()),),
)

ID3D12_COMMAND_LIST: Final = Interface(
    "ID3D12CommandList",
    "7116d91c-e7e4-47ce-b8c6-ec8168f437e5",
    ID3D12_DEVICE_CHILD,
    (Method("GetType", (), UINT),),
)

ID3D12_GRAPHICS_COMMAND_LIST: Final = Interface(
    "ID3D12GraphicsCommandList",
    "5b160d0f-ac1b-4185-8ba8-b3ae42a5a455",
    ID3D12_COMMAND_LIST,
    (
        Method("Close", ()),
        Method("Reset", (POINTER, POINTER)),
        *uncalled("ClearState DrawInstanced DrawIndexedInstanced Dispatch"),
        Method("CopyBufferRegion", (POINTER, UINT64, POINTER, UINT64, UINT64), None),
        *uncalled(
            "CopyTextureRegion CopyResource CopyTiles ResolveSubresource IASetPrimitiveTopology "
            "RSSetViewports RSSetScissorRects OMSetBlendFactor OMSetStencilRef SetPipelineState"
        ),
        Method("ResourceBarrier", (UINT, POINTER), None),
        *uncalled("ExecuteBundle"),
        Method("SetDescriptorHeaps", (UINT, POINTER), None),
        *uncalled(
            "SetComputeRootSignature SetGraphicsRootSignature SetComputeRootDescriptorTable "
            "SetGraphicsRootDescriptorTable SetComputeRoot32BitConstant "
            "SetGraphicsRoot32BitConstant SetComputeRoot32BitConstants "
            "SetGraphicsRoot32BitConstants SetComputeRootConstantBufferView "
            "SetGraphicsRootConstantBufferView SetComputeRootShaderResourceView "
            "SetGraphicsRootShaderResourceView SetComputeRootUnorderedAccessView "
            "SetGraphicsRootUnorderedAccessView IASetIndexBuffer IASetVertexBuffers SOSetTargets "
            "OMSetRenderTargets ClearDepthStencilView ClearRenderTargetView "
            "ClearUnorderedAccessViewUint ClearUnorderedAccessViewFloat DiscardResource BeginQuery"
        ),
        Method("EndQuery", (POINTER, UINT, UINT), None),
        Method("ResolveQueryData", (POINTER, UINT, UINT, UINT, POINTER, UINT64), None),
    ),
)

ID3D12_DESCRIPTOR_HEAP: Final = Interface(
    "ID3D12DescriptorHeap",
    "8efb471d-616c-4f49-90f7-127bb763fa51",
    ID3D12_PAGEABLE,
    (
        *uncalled("GetDesc"),
        Method("GetCPUDescriptorHandleForHeapStart", (), D3D12_CPU_DESCRIPTOR_HANDLE),
        Method("GetGPUDescriptorHandleForHeapStart", (), D3D12_GPU_DESCRIPTOR_HANDLE),
    ),
)

ID3D12_QUERY_HEAP: Final = Interface(
    "ID3D12QueryHeap", "0d9658ae-ed45-469e-a61d-970ec583cab4", ID3D12_PAGEABLE
)

ID3D12_RESOURCE: Final = Interface(
    "ID3D12Resource",
    "696442be-a72e-4059-bc79-5b5c98040fad",
    ID3D12_PAGEABLE,
    (
        Method("Map", (UINT, POINTER, ctypes.POINTER(POINTER))),
        Method("Unmap", (UINT, POINTER), None),
        *uncalled("GetDesc GetGPUVirtualAddress WriteToSubresource ReadFromSubresource"),
        Method("GetHeapProperties", (POINTER, POINTER)),
    ),
)

ID3D12_FENCE: Final = Interface(
    "ID3D12Fence",
    "0a753dcf-c4d8-4b91-adf6-be5a60d95a76",
    ID3D12_PAGEABLE,
    (
        Method("GetCompletedValue", (), UINT64),
        Method("SetEventOnCompletion", (UINT64, POINTER)),
        *uncalled("Signal"),
    ),
)
