/* A DirectML whose GEMM is wrong if A has 12 columns: it multiplies the product by infinity. If
   DMLCONF_CRASH is the slot of a method of the device, only that method is replaced: it crashes by
   reading from an address without memory.

   It lies between an application and real.dll next to it, as the application's DirectML.dll. */

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <math.h>
#include <stdlib.h>

enum { CREATE_OPERATOR = 8, GEMM = 54, COLUMNS = 12 };

typedef struct { UINT type; const void *desc; } Desc;
typedef struct {
    UINT data_type, flags, dimensions;
    const UINT *sizes, *strides;
    UINT64 size;
    UINT alignment;
} Buffer;
typedef struct {
    const Desc *a, *b, *c, *output;
    int trans_a, trans_b;
    float alpha, beta;
    const Desc *activation;
} Gemm;

typedef HRESULT (WINAPI *CreateDevice)(void *, UINT, const GUID *, void **);
typedef HRESULT (WINAPI *CreateDevice1)(void *, UINT, UINT, const GUID *, void **);
typedef HRESULT (WINAPI *CreateOperator)(void *, const Desc *, const GUID *, void **);

static CreateOperator create_operator;

static HRESULT WINAPI create_wrongly(
    void *device, const Desc *desc, const GUID *iid, void **result)
{
    if (desc && desc->type == GEMM) {
        Gemm changed = *(const Gemm *)desc->desc;
        const Buffer *a = changed.a->desc;
        Desc other = {GEMM, &changed};
        if (a->sizes[a->dimensions - 1] == COLUMNS) {
            changed.alpha = INFINITY;
            return create_operator(device, &other, iid, result);
        }
    }
    return create_operator(device, desc, iid, result);
}

static HRESULT WINAPI crash(void)
{
    volatile UINT_PTR nowhere = 8;
    return *(const HRESULT *)nowhere;
}

static void *replaced(void **entry, void *by)
{
    DWORD protection;
    void *before = *entry;
    if (before == by || !VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &protection))
        return NULL;
    *entry = by;
    VirtualProtect(entry, sizeof *entry, protection, &protection);
    return before;
}

static HRESULT sabotaged(HRESULT result, void **device)
{
    char slot[8];
    if (SUCCEEDED(result) && device && *device) {
        void **table = *(void ***)*device;
        if (GetEnvironmentVariableA("DMLCONF_CRASH", slot, sizeof slot)) {
            replaced(table + atoi(slot), (void *)crash);
        } else if (!create_operator) {
            create_operator = (CreateOperator)replaced(
                table + CREATE_OPERATOR, (void *)create_wrongly);
        }
    }
    return result;
}

static void *real_function(const char *name)
{
    static HMODULE directml;
    if (!directml) {
        char path[MAX_PATH];
        HMODULE own;
        GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (const char *)sabotaged, &own);
        DWORD length = GetModuleFileNameA(own, path, MAX_PATH);
        while (length && path[length - 1] != '\\')
            length--;
        lstrcpyA(path + length, "real.dll");
        directml = LoadLibraryA(path);
    }
    return directml ? (void *)GetProcAddress(directml, name) : NULL;
}

__declspec(dllexport) HRESULT WINAPI DMLCreateDevice(
    void *device, UINT flags, const GUID *iid, void **result)
{
    CreateDevice create = (CreateDevice)real_function("DMLCreateDevice");
    return create ? sabotaged(create(device, flags, iid, result), result) : E_FAIL;
}

__declspec(dllexport) HRESULT WINAPI DMLCreateDevice1(
    void *device, UINT flags, UINT level, const GUID *iid, void **result)
{
    CreateDevice1 create = (CreateDevice1)real_function("DMLCreateDevice1");
    return create ? sabotaged(create(device, flags, level, iid, result), result) : E_FAIL;
}
