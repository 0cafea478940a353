// Stands in for DXCore, Direct3D 12 and DirectML on Linux, to test how they are called: methods
// return structures of several sizes, and their arguments. No operator is computed here.
#include <cstdint>
#include <cstdlib>
#include <cstring>

// Without external linkage, so that each library uses its own, although dmlconf opens some of them
// with RTLD_GLOBAL.
namespace {

using HRESULT = int32_t;
using ULONG = uint32_t;
using UINT = uint32_t;

struct GUID { uint8_t bytes[16]; };
struct Luid { uint32_t low; int32_t high; };
struct Pair { uint64_t first, second; };
struct BindingProperties { UINT descriptors; uint64_t temporary, persistent; };
struct Large { uint64_t words[7]; };
struct HardwareId { uint32_t vendor, device, subsystem, revision; };

int alive = 0;

struct IUnknown {
    virtual HRESULT QueryInterface(const GUID &, void **) = 0;
    virtual ULONG AddRef() = 0;
    virtual ULONG Release() = 0;
};

template <class Interface> struct Object : Interface {
    ULONG references = 1;
    Object() { ++alive; }
    HRESULT QueryInterface(const GUID &, void **out) override {
        *out = this;
        ++references;
        return 0;
    }
    ULONG AddRef() override { return ++references; }
    ULONG Release() override {
        ULONG left = --references;
        if (left == 0) {
            --alive;
            delete this;
        }
        return left;
    }
};

struct IReturns : IUnknown {
    virtual Luid Eight() = 0;
    virtual Pair Sixteen(uint64_t) = 0;
    virtual BindingProperties TwentyFour() = 0;
    virtual Large FiftySix(UINT, uint64_t) = 0;
    virtual HRESULT Fail(uint32_t) = 0;
    virtual uint64_t Sum(UINT, uint64_t, const uint64_t *) = 0;
    virtual HRESULT Make(UINT, const GUID &, void **) = 0;
};

struct Returns final : Object<IReturns> {
    UINT number;
    explicit Returns(UINT number) : number(number) {}
    Luid Eight() override { return {number, -2}; }
    Pair Sixteen(uint64_t value) override { return {value, number}; }
    BindingProperties TwentyFour() override { return {number, 1ull << 40, 3}; }
    Large FiftySix(UINT first, uint64_t last) override { return {{first, 2, 3, 4, 5, 6, last}}; }
    HRESULT Fail(uint32_t hresult) override { return (HRESULT)hresult; }
    uint64_t Sum(UINT a, uint64_t b, const uint64_t *c) override { return a + b + *c; }
    HRESULT Make(UINT value, const GUID &, void **out) override {
        *out = value ? new Returns(value) : nullptr;
        return 0;
    }
};

struct IDXCoreAdapter : IUnknown {
    virtual bool IsValid() = 0;
    virtual bool IsAttributeSupported(const GUID &) = 0;
    virtual bool IsPropertySupported(uint32_t) = 0;
    virtual HRESULT GetProperty(uint32_t, size_t, void *) = 0;
    virtual HRESULT GetPropertySize(uint32_t, size_t *) = 0;
};

struct Adapter final : Object<IDXCoreAdapter> {
    uint32_t index;
    char name[32] = "Stand-in 0";
    explicit Adapter(uint32_t index) : index(index) { name[9] = '0' + index; }
    bool IsValid() override { return true; }
    bool IsAttributeSupported(const GUID &) override { return true; }
    bool IsPropertySupported(uint32_t property) override { return property != 1 || index == 0; }
    HRESULT GetProperty(uint32_t property, size_t size, void *out) override {
        Luid luid{0x1234 + index, 1};
        uint64_t version = 31ull << 48 | 101ull << 16 | 2115, memory = 6ull << 30;
        HardwareId id{0x10de, 0x2684, 0, 0xa1};
        bool hardware = index == 0;
        bool no = false;
        const void *values[] = {&luid, &version, name, &id, 0, 0, 0, &memory, 0, 0, 0, &hardware, &no};
        if (property > 12 || !values[property]) return (HRESULT)0x80070057;
        memcpy(out, values[property], size);
        return 0;
    }
    HRESULT GetPropertySize(uint32_t, size_t *size) override {
        *size = strlen(name) + 1;
        return 0;
    }
};

struct IDXCoreAdapterList : IUnknown {
    virtual HRESULT GetAdapter(uint32_t, const GUID &, void **) = 0;
    virtual uint32_t GetAdapterCount() = 0;
};

struct List final : Object<IDXCoreAdapterList> {
    HRESULT GetAdapter(uint32_t index, const GUID &, void **out) override {
        *out = new Adapter(index);
        return 0;
    }
    uint32_t GetAdapterCount() override { return 2; }
};

struct IDXCoreAdapterFactory : IUnknown {
    virtual HRESULT CreateAdapterList(uint32_t, const GUID *, const GUID &, void **) = 0;
    virtual HRESULT GetAdapterByLuid(const Luid &, const GUID &, void **) = 0;
};

struct Factory final : Object<IDXCoreAdapterFactory> {
    HRESULT CreateAdapterList(uint32_t, const GUID *, const GUID &, void **out) override {
        *out = new List;
        return 0;
    }
    HRESULT GetAdapterByLuid(const Luid &luid, const GUID &, void **out) override {
        *out = new Adapter(luid.low - 0x1234);
        return 0;
    }
};

// Ends the process as soon as the library is loaded, if a test asks for it.
struct Loaded {
    Loaded() { if (getenv("STANDIN_LIBRARY_DIES")) _Exit(9); }
} loaded;

}  // namespace

extern "C" {
int standin_alive() { return alive; }
void *standin_returns(UINT number) { return new Returns(number); }
HRESULT DXCoreCreateAdapterFactory(const GUID &, void **out) {
    *out = new Factory;
    return 0;
}
HRESULT D3D12CreateDevice(void *adapter, UINT, const GUID &, void **) {
    // Ends the process as a broken driver does, for the adapter that a test names.
    const char *dies = getenv("STANDIN_DRIVER_DIES");
    char name[32] = "";
    static_cast<IDXCoreAdapter *>(static_cast<IUnknown *>(adapter))->GetProperty(2, sizeof name, name);
    if (dies && !strcmp(name, dies)) abort();
    return (HRESULT)0x887a0004;
}
#ifdef WITH_DIRECTML
const char *standin_version = "DirectML/1.99.3";
HRESULT DMLCreateDevice1(void *, UINT, UINT, const GUID &, void **) { return (HRESULT)0x80004005; }
#endif
}
