// Stands in for Direct3D 12 on Linux: buffers, lists that copy, and queues that run them later, on
// threads of their own. Shaders do nothing, which is enough for Microsoft's DirectML to run on it.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "interfaces.h"

namespace {

constexpr UINT SHADER_MODEL = 7, OPTIONS4 = 23;

std::atomic<int> alive{0};

template <class Interface> struct Counted : Child<Interface, ID3D12Device> {
    explicit Counted(ID3D12Device *device) : Child<Interface, ID3D12Device>(device) { ++alive; }
    ~Counted() { --alive; }
};

// The buffers that exist. On a device, a list that copies a released buffer could read anything.
std::mutex guard;
std::set<UINT64> buffers;

void require(UINT64 number) {
    std::lock_guard lock(guard);
    if (!buffers.count(number)) {
        fprintf(stderr, "stand-in: a list copies a buffer that was released\n");
        abort();
    }
}

struct Resource final : Counted<ID3D12Resource> {
    static inline UINT64 last = 0;
    UINT64 number;
    HeapProperties heap;
    ResourceDesc desc;
    std::vector<uint8_t> content;
    Resource(ID3D12Device *device, const HeapProperties &heap, const ResourceDesc &desc)
        : Counted(device), heap(heap), desc(desc), content(desc.width) {
        std::lock_guard lock(guard);
        buffers.insert(number = ++last);
    }
    ~Resource() {
        std::lock_guard lock(guard);
        buffers.erase(number);
    }
    HRESULT Map(UINT, const void *, void **out) override {
        if (heap.type == DEFAULT_HEAP) return E_INVALIDARG;
        *out = content.data();
        return S_OK;
    }
    void Unmap(UINT, const void *) override {}
    ResourceDesc GetDesc() override { return desc; }
    HRESULT GetHeapProperties(HeapProperties *out, UINT *) override {
        *out = heap;
        return S_OK;
    }
    uint8_t *Bytes() override { return content.data(); }
    UINT64 Number() override { return number; }
};

struct Fence final : Counted<ID3D12Fence> {
    std::atomic<UINT64> value;
    Fence(ID3D12Device *device, UINT64 first) : Counted(device), value(first) {}
    UINT64 GetCompletedValue() override { return value; }
    void Complete(UINT64 reached) override { value = reached; }
};

struct Allocator final : Counted<ID3D12CommandAllocator> {
    using Counted::Counted;
    HRESULT Reset() override { return S_OK; }
};

struct Heap final : Counted<ID3D12DescriptorHeap> {
    using Counted::Counted;
    Handle GetCPUDescriptorHandleForHeapStart() override { return {0x1000}; }
    Handle GetGPUDescriptorHandleForHeapStart() override { return {0x2000}; }
};

// A root signature or pipeline state; the former's methods are not called.
struct Opaque final : Counted<IChild> {
    using Counted::Counted;
};

// Serialized root signatures. The destructor comes last, so that its slots do as well.
struct IBlob : IUnknown {
    virtual void *GetBufferPointer() = 0;
    virtual size_t GetBufferSize() = 0;
};

struct Blob final : Object<IBlob, IUnknown> {
    uint8_t content[64] = {};
    Blob() : Object(nullptr) {}
    void *GetBufferPointer() override { return content; }
    size_t GetBufferSize() override { return sizeof content; }
};

struct List final : Counted<ID3D12GraphicsCommandList> {
    UINT type;
    std::vector<std::function<void()>> commands;
    List(ID3D12Device *device, UINT type) : Counted(device), type(type) {}
    UINT GetType() override { return type; }
    HRESULT Close() override { return S_OK; }
    HRESULT Reset(ID3D12CommandAllocator *, void *) override {
        commands.clear();
        return S_OK;
    }
    void CopyBufferRegion(ID3D12Resource *to, UINT64 at, ID3D12Resource *from, UINT64 start,
                          UINT64 size) override {
        UINT64 target = to->Number(), source = from->Number();
        commands.push_back([=] {
            require(target);
            require(source);
            memcpy(to->Bytes() + at, from->Bytes() + start, size);
        });
    }
    void ResourceBarrier(UINT, const Barrier *) override {}
    void SetDescriptorHeaps(UINT, ID3D12DescriptorHeap *const *) override {}
    void Compute(std::function<void()> what) override { commands.push_back(std::move(what)); }
    const std::vector<std::function<void()>> &Commands() override { return commands; }
};

struct Queue final : Counted<ID3D12CommandQueue> {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool ends = false;
    std::thread thread{[this] { run(); }};
    using Counted::Counted;
    ~Queue() {
        add([this] { ends = true; });
        thread.join();
    }
    void add(std::function<void()> what) {
        std::lock_guard lock(mutex);
        work.push_back(std::move(what));
        changed.notify_one();
    }
    void run() {
        while (!ends) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [this] { return !work.empty(); });
            auto what = std::move(work.front());
            work.pop_front();
            lock.unlock();
            what();
        }
    }
    void ExecuteCommandLists(UINT count, ID3D12GraphicsCommandList *const *lists) override {
        for (UINT index = 0; index < count; ++index) {
            for (const auto &command : lists[index]->Commands()) add(command);
        }
        // Whoever reads a buffer without waiting for the fence reads it too early.
        add([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
    }
    HRESULT Signal(ID3D12Fence *fence, UINT64 value) override {
        add([=] { fence->Complete(value); });
        return S_OK;
    }
    HRESULT Wait(ID3D12Fence *fence, UINT64 value) override {
        add([=] { while (fence->GetCompletedValue() < value) std::this_thread::yield(); });
        return S_OK;
    }
    HRESULT GetTimestampFrequency(UINT64 *) override { return E_FAIL; }
};

struct Device final : Object<ID3D12Device, IUnknown> {
    std::atomic<int> copies{0};
    Device() : Object(nullptr) { ++alive; }
    ~Device() { --alive; }
    UINT GetNodeCount() override { return 1; }
    HRESULT CreateCommandQueue(const QueueDesc *, const GUID &, void **out) override {
        *out = new Queue(this);
        return S_OK;
    }
    HRESULT CreateCommandAllocator(UINT, const GUID &, void **out) override {
        *out = new Allocator(this);
        return S_OK;
    }
    HRESULT CreateCommandList(UINT, UINT type, ID3D12CommandAllocator *, void *, const GUID &,
                              void **out) override {
        *out = new List(this, type);
        return S_OK;
    }
    HRESULT CreateDescriptorHeap(const void *, const GUID &, void **out) override {
        *out = new Heap(this);
        return S_OK;
    }
    UINT GetDescriptorHandleIncrementSize(UINT) override { return 32; }
    HRESULT CreateCommittedResource(const HeapProperties *heap, UINT, const ResourceDesc *desc,
                                    UINT, const void *, const GUID &, void **out) override {
        // Buffers of 512 bytes and more are dmlconf's, for its copies of tensors.
        const char *most = getenv("STANDIN_MOST_COPIES");
        bool counts = most && heap->type == READBACK_HEAP && desc->width >= 512;
        if (counts && copies++ >= atoi(most)) return (HRESULT)0x8007000e;
        *out = new Resource(this, *heap, *desc);
        return S_OK;
    }
    HRESULT CreateFence(UINT64 value, UINT, const GUID &, void **out) override {
        *out = new Fence(this, value);
        return S_OK;
    }
    HRESULT GetDeviceRemovedReason() override { return S_OK; }
    HRESULT CreateComputePipelineState(const void *, const GUID &, void **out) override {
        *out = new Opaque(this);
        return S_OK;
    }
    HRESULT CreateRootSignature(UINT, const void *, size_t, const GUID &, void **out) override {
        *out = new Opaque(this);
        return S_OK;
    }
    HRESULT CheckFeatureSupport(UINT feature, void *data, UINT size) override {
        if (feature == SHADER_MODEL) return S_OK;  // As high as was asked.
        memset(data, 0, size);
        if (feature == OPTIONS4) static_cast<UINT *>(data)[2] = 1;  // Shaders know 16-bit types.
        return S_OK;
    }
    Luid GetAdapterLuid() override { return {0x1234, 1}; }
    HRESULT EnumerateMetaCommands(UINT *count, void *) override {
        *count = 0;
        return S_OK;
    }
};

}  // namespace

extern "C" {
int standin_d3d12_alive() { return alive; }
HRESULT D3D12CreateDevice(void *, UINT, const GUID &, void **out) {
    if (getenv("STANDIN_NO_DEVICE")) return (HRESULT)0x887a0004;
    *out = new Device;
    return S_OK;
}
HRESULT D3D12SerializeVersionedRootSignature(const void *, void **out, void **) {
    *out = static_cast<IBlob *>(new Blob);
    return S_OK;
}
}
