// The interfaces and structures of d3d12.h and DirectML.h that the stand-ins, their application and
// Microsoft's DirectML use, in the headers' order and in Linux' calling convention. Methods that
// none of them calls have their slot and end the process.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

using HRESULT = int32_t;
using ULONG = uint32_t;
using UINT = uint32_t;
using UINT64 = uint64_t;

constexpr HRESULT S_OK = 0, E_INVALIDARG = (HRESULT)0x80070057, E_FAIL = (HRESULT)0x80004005;
constexpr HRESULT E_NOINTERFACE = (HRESULT)0x80004002;

struct GUID { uint8_t bytes[16]; };

#define UNUSED(name) virtual void name() { fprintf(stderr, "stand-in: " #name "\n"); abort(); }
#define NOTHING(name) virtual HRESULT name() { return S_OK; }  // Whatever its parameters are.

struct IUnknown {
    virtual HRESULT QueryInterface(const GUID &, void **) = 0;
    virtual ULONG AddRef() = 0;
    virtual ULONG Release() = 0;
};

struct INamed : IUnknown {  // ID3D12Object and IDMLObject
    UNUSED(GetPrivateData) UNUSED(SetPrivateData) UNUSED(SetPrivateDataInterface) NOTHING(SetName)
};

struct IChild : INamed {  // ID3D12DeviceChild and IDMLDeviceChild
    virtual HRESULT GetDevice(const GUID &, void **) = 0;
};

struct Handle { UINT64 ptr; };
struct Luid { uint32_t low; int32_t high; };
struct HeapProperties { UINT type, page, pool, creation, visible; };
struct ResourceDesc {
    UINT dimension;
    UINT64 alignment, width;
    UINT height;
    uint16_t depth, mips;
    UINT format, samples, quality, layout, flags;
};
struct QueueDesc { UINT type; int32_t priority; UINT flags, mask; };
struct Barrier { UINT type, flags; void *resource; UINT subresource, before, after; };

struct ID3D12Resource : IChild {
    virtual HRESULT Map(UINT, const void *, void **) = 0;
    virtual void Unmap(UINT, const void *) = 0;
    virtual ResourceDesc GetDesc() = 0;
    UNUSED(GetGPUVirtualAddress) UNUSED(WriteToSubresource) UNUSED(ReadFromSubresource)
    virtual HRESULT GetHeapProperties(HeapProperties *, UINT *) = 0;
    virtual uint8_t *Bytes() = 0;  // Only of the stand-in.
    virtual UINT64 Number() = 0;
};

struct ID3D12Fence : IChild {
    virtual UINT64 GetCompletedValue() = 0;
    UNUSED(SetEventOnCompletion) UNUSED(Signal)
    virtual void Complete(UINT64) = 0;  // Only of the stand-in.
};

struct ID3D12CommandAllocator : IChild {
    virtual HRESULT Reset() = 0;
};

struct ID3D12DescriptorHeap : IChild {
    UNUSED(GetDesc)
    virtual Handle GetCPUDescriptorHandleForHeapStart() = 0;
    virtual Handle GetGPUDescriptorHandleForHeapStart() = 0;
};

struct ID3D12GraphicsCommandList : IChild {
    virtual UINT GetType() = 0;
    virtual HRESULT Close() = 0;
    virtual HRESULT Reset(ID3D12CommandAllocator *, void *) = 0;
    UNUSED(ClearState) UNUSED(DrawInstanced) UNUSED(DrawIndexedInstanced) NOTHING(Dispatch)
    virtual void CopyBufferRegion(ID3D12Resource *, UINT64, ID3D12Resource *, UINT64, UINT64) = 0;
    UNUSED(CopyTextureRegion) UNUSED(CopyResource) UNUSED(CopyTiles) UNUSED(ResolveSubresource)
    UNUSED(IASetPrimitiveTopology) UNUSED(RSSetViewports) UNUSED(RSSetScissorRects)
    UNUSED(OMSetBlendFactor) UNUSED(OMSetStencilRef) NOTHING(SetPipelineState)
    virtual void ResourceBarrier(UINT, const Barrier *) = 0;
    UNUSED(ExecuteBundle)
    virtual void SetDescriptorHeaps(UINT, ID3D12DescriptorHeap *const *) = 0;
    NOTHING(SetComputeRootSignature) UNUSED(SetGraphicsRootSignature)
    NOTHING(SetComputeRootDescriptorTable) UNUSED(SetGraphicsRootDescriptorTable)
    UNUSED(SetComputeRoot32BitConstant) UNUSED(SetGraphicsRoot32BitConstant)
    NOTHING(SetComputeRoot32BitConstants)
    virtual void Compute(std::function<void()>) = 0;  // Only of the stand-in.
    virtual const std::vector<std::function<void()>> &Commands() = 0;
};

struct ID3D12CommandQueue : IChild {
    UNUSED(UpdateTileMappings) UNUSED(CopyTileMappings)
    virtual void ExecuteCommandLists(UINT, ID3D12GraphicsCommandList *const *) = 0;
    UNUSED(SetMarker) UNUSED(BeginEvent) UNUSED(EndEvent)
    virtual HRESULT Signal(ID3D12Fence *, UINT64) = 0;
    virtual HRESULT Wait(ID3D12Fence *, UINT64) = 0;
    virtual HRESULT GetTimestampFrequency(UINT64 *) = 0;
};

struct ID3D12Device : INamed {
    virtual UINT GetNodeCount() = 0;
    virtual HRESULT CreateCommandQueue(const QueueDesc *, const GUID &, void **) = 0;
    virtual HRESULT CreateCommandAllocator(UINT, const GUID &, void **) = 0;
    UNUSED(CreateGraphicsPipelineState)
    virtual HRESULT CreateComputePipelineState(const void *, const GUID &, void **) = 0;
    virtual HRESULT CreateCommandList(UINT, UINT, ID3D12CommandAllocator *, void *, const GUID &,
                                      void **) = 0;
    virtual HRESULT CheckFeatureSupport(UINT, void *, UINT) = 0;
    virtual HRESULT CreateDescriptorHeap(const void *, const GUID &, void **) = 0;
    virtual UINT GetDescriptorHandleIncrementSize(UINT) = 0;
    virtual HRESULT CreateRootSignature(UINT, const void *, size_t, const GUID &, void **) = 0;
    UNUSED(CreateConstantBufferView) UNUSED(CreateShaderResourceView)
    NOTHING(CreateUnorderedAccessView) UNUSED(CreateRenderTargetView)
    UNUSED(CreateDepthStencilView) UNUSED(CreateSampler) UNUSED(CopyDescriptors)
    UNUSED(CopyDescriptorsSimple) UNUSED(GetResourceAllocationInfo)
    UNUSED(GetCustomHeapProperties)
    virtual HRESULT CreateCommittedResource(const HeapProperties *, UINT, const ResourceDesc *,
                                            UINT, const void *, const GUID &, void **) = 0;
    UNUSED(CreateHeap) UNUSED(CreatePlacedResource) UNUSED(CreateReservedResource)
    UNUSED(CreateSharedHandle) UNUSED(OpenSharedHandle) UNUSED(OpenSharedHandleByName)
    NOTHING(MakeResident) NOTHING(Evict)
    virtual HRESULT CreateFence(UINT64, UINT, const GUID &, void **) = 0;
    virtual HRESULT GetDeviceRemovedReason() = 0;
    UNUSED(GetCopyableFootprints) UNUSED(CreateQueryHeap) UNUSED(SetStablePowerState)
    UNUSED(CreateCommandSignature) UNUSED(GetResourceTiling)
    virtual Luid GetAdapterLuid() = 0;
    // Of ID3D12Device1 to 5:
    UNUSED(CreatePipelineLibrary) UNUSED(SetEventOnMultipleFenceCompletion)
    UNUSED(SetResidencyPriority) UNUSED(CreatePipelineState) UNUSED(OpenExistingHeapFromAddress)
    UNUSED(OpenExistingHeapFromFileMapping) UNUSED(EnqueueMakeResident) UNUSED(CreateCommandList1)
    UNUSED(CreateProtectedResourceSession) UNUSED(CreateCommittedResource1) UNUSED(CreateHeap1)
    UNUSED(CreateReservedResource1) UNUSED(GetResourceAllocationInfo1)
    UNUSED(CreateLifetimeTracker) UNUSED(RemoveDevice)
    virtual HRESULT EnumerateMetaCommands(UINT *, void *) = 0;
};

struct TensorDesc { UINT type; const struct BufferTensorDesc *desc; };
struct BufferTensorDesc {
    UINT dataType, flags, dimensions;
    const UINT *sizes, *strides;
    UINT64 bytes;
    UINT alignment;
};
struct OperatorDesc { UINT type; const TensorDesc *const *desc; };
struct BufferBinding { ID3D12Resource *buffer; UINT64 offset, size; };
struct ArrayBinding { UINT count; const BufferBinding *bindings; };
struct BindingDesc { UINT type; const void *desc; };
struct BindingProperties { UINT descriptors; UINT64 temporary, persistent; };

struct IDMLOperator : IChild {};

struct IDMLDispatchable : IChild {
    virtual BindingProperties GetBindingProperties() = 0;
};

struct IDMLCompiledOperator : IDMLDispatchable {};

struct IDMLOperatorInitializer : IDMLDispatchable {
    virtual HRESULT Reset(UINT, IDMLCompiledOperator *const *) = 0;
};

struct BindingTableDesc { IDMLDispatchable *dispatchable; Handle cpu, gpu; UINT size; };

struct IDMLBindingTable : IChild {
    virtual void BindInputs(UINT, const BindingDesc *) = 0;
    virtual void BindOutputs(UINT, const BindingDesc *) = 0;
    virtual void BindTemporaryResource(const BindingDesc *) = 0;
    virtual void BindPersistentResource(const BindingDesc *) = 0;
    virtual HRESULT Reset(const BindingTableDesc *) = 0;
};

struct IDMLCommandRecorder : IChild {
    virtual void RecordDispatch(ID3D12GraphicsCommandList *, IDMLDispatchable *,
                                IDMLBindingTable *) = 0;
};

struct NodeDesc { UINT type; const void *desc; };
struct OperatorNodeDesc { IDMLOperator *op; const char *name; };
struct InputEdgeDesc { UINT graphInput, toNode, toInput; const char *name; };
struct OutputEdgeDesc { UINT fromNode, fromOutput, graphOutput; const char *name; };
struct IntermediateEdgeDesc { UINT fromNode, fromOutput, toNode, toInput; const char *name; };
struct GraphDesc {
    UINT inputs, outputs, nodeCount;
    const NodeDesc *nodes;
    UINT inputEdgeCount;
    const NodeDesc *inputEdges;
    UINT outputEdgeCount;
    const NodeDesc *outputEdges;
    UINT intermediateEdgeCount;
    const NodeDesc *intermediateEdges;
};

struct IDMLDevice1 : INamed {
    virtual HRESULT CheckFeatureSupport(UINT, UINT, const void *, UINT, void *) = 0;
    virtual HRESULT CreateOperator(const OperatorDesc *, const GUID &, void **) = 0;
    virtual HRESULT CompileOperator(IDMLOperator *, UINT, const GUID &, void **) = 0;
    virtual HRESULT CreateOperatorInitializer(UINT, IDMLCompiledOperator *const *, const GUID &,
                                              void **) = 0;
    virtual HRESULT CreateCommandRecorder(const GUID &, void **) = 0;
    virtual HRESULT CreateBindingTable(const BindingTableDesc *, const GUID &, void **) = 0;
    UNUSED(Evict) UNUSED(MakeResident)
    virtual HRESULT GetDeviceRemovedReason() = 0;
    UNUSED(GetParentDevice)
    virtual HRESULT CompileGraph(const GraphDesc *, UINT, const GUID &, void **) = 0;
};

constexpr UINT RELU = 44, ADD = 4, FLOAT32 = 1, OWNED_BY_DML = 1, DESCRIPTORS_VOLATILE = 4;
constexpr UINT DEFAULT_HEAP = 1, UPLOAD_HEAP = 2, READBACK_HEAP = 3, BUFFER = 1, BUFFER_ARRAY = 2;

// The first 4 bytes of the identifiers that QueryInterface knows, besides those of IUnknown.
template <class Interface> constexpr uint32_t OWN = 0;
template <class Interface> constexpr uint32_t NEWER = 0;
template <> constexpr uint32_t OWN<ID3D12Resource> = 0x696442be;
template <> constexpr uint32_t OWN<ID3D12GraphicsCommandList> = 0x5b160d0f;
template <> constexpr uint32_t OWN<ID3D12Device> = 0x189819f1;
template <> constexpr uint32_t NEWER<ID3D12Device> = 0x8b4f173b;  // ID3D12Device5
template <> constexpr uint32_t OWN<IDMLDevice1> = 0xa0884f9a;

// An object that counts its references, and keeps the device that made it.
template <class Interface, class Parent> struct Object : Interface {
    std::atomic<ULONG> references{1};
    Parent *parent;
    explicit Object(Parent *parent) : parent(parent) {
        if (parent) parent->AddRef();
    }
    virtual ~Object() {
        if (parent) parent->Release();
    }
    HRESULT QueryInterface(const GUID &iid, void **out) override {
        uint32_t wanted;
        memcpy(&wanted, &iid, 4);
        *out = nullptr;
        if (wanted && wanted != OWN<Interface> && wanted != NEWER<Interface>) return E_NOINTERFACE;
        *out = static_cast<Interface *>(this);
        ++references;
        return S_OK;
    }
    ULONG AddRef() override { return ++references; }
    ULONG Release() override {
        ULONG left = --references;
        if (left == 0) delete this;
        return left;
    }
};

template <class Interface, class Parent> struct Child : Object<Interface, Parent> {
    using Object<Interface, Parent>::Object;
    HRESULT GetDevice(const GUID &, void **out) override {
        this->parent->AddRef();
        *out = this->parent;
        return S_OK;
    }
};
