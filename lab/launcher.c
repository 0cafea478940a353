/* python.exe of the Wine lab.

   panda3d ships CPython's DLL without the small program that calls it; this is that program.

   Under Wine it also makes up for one gap before Python starts. DMLCreateDevice asks the D3D12
   device for its metacommands. A driver that has none answers S_OK and the number 0, but the
   ID3D12Device5::EnumerateMetaCommands of Wine's vkd3d answers E_NOTIMPL, and DirectML then gives up.
   The launcher puts the answer "there are none" into the device's table of functions, which all
   devices of the process share. The answer is true: there are none. dmlconf itself contains no such
   patch, so what it calls is what it calls on Windows. */

#include <initguid.h>
#include <windows.h>
#include <stdio.h>

#ifndef PYTHON_DLL
#error "define PYTHON_DLL as the name of CPython's DLL"
#endif

/* Exit codes that winelab/session.py knows. */
enum { NO_PYTHON = 102, NO_DEVICE = 103 };

/* Places in the table of ID3D12Device5, as d3d12.h declares its methods. */
enum { RELEASE = 2, ENUMERATE_META_COMMANDS = 59 };

enum { FEATURE_LEVEL_11_0 = 0xb000, PATIENCE_MILLISECONDS = 300 };

DEFINE_GUID(device_interface,
            0x8b4f173b, 0x2fea, 0x4b80, 0x8f, 0x58, 0x43, 0x07, 0x19, 0x1a, 0xb9, 0x5d);

typedef HRESULT (WINAPI *create_device)(void *adapter, int level, const GUID *iid, void **device);
typedef HRESULT (WINAPI *enumerate)(void *device, UINT *count, void *descs);
typedef ULONG (WINAPI *release)(void *device);
typedef int (*python_main)(int argc, wchar_t **argv);

static HRESULT WINAPI there_are_none(void *device, UINT *count, void *descs)
{
    (void)device;
    (void)descs;
    if (!count)
        return E_INVALIDARG;
    *count = 0;
    return S_OK;
}

static int on_wine(void)
{
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

static HRESULT answer_for_meta_commands(void)
{
    HMODULE d3d12 = LoadLibraryW(L"d3d12.dll");
    create_device create;
    void *device = NULL, **table;
    UINT count = 0;
    DWORD protection;
    HRESULT result;

    if (!d3d12)
        return HRESULT_FROM_WIN32(GetLastError());
    create = (create_device)(void *)GetProcAddress(d3d12, "D3D12CreateDevice");
    if (!create)
        return HRESULT_FROM_WIN32(GetLastError());
    result = create(NULL, FEATURE_LEVEL_11_0, &device_interface, &device);
    if (FAILED(result)) {
        Sleep(PATIENCE_MILLISECONDS);
        result = create(NULL, FEATURE_LEVEL_11_0, &device_interface, &device);
    }
    if (FAILED(result))
        return result;
    table = *(void ***)device;
    result = ((enumerate)table[ENUMERATE_META_COMMANDS])(device, &count, NULL);
    if (result == E_NOTIMPL) {
        void **entry = table + ENUMERATE_META_COMMANDS;
        if (VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &protection)) {
            *entry = (void *)there_are_none;
            VirtualProtect(entry, sizeof *entry, protection, &protection);
            result = S_OK;
        } else {
            result = HRESULT_FROM_WIN32(GetLastError());
        }
    }
    ((release)table[RELEASE])(device);
    return result;
}

int wmain(int argc, wchar_t **argv)
{
    HMODULE python = LoadLibraryW(PYTHON_DLL);
    python_main run = python ? (python_main)(void *)GetProcAddress(python, "Py_Main") : NULL;

    if (!run) {
        fprintf(stderr, "%ls: error %lu\n", PYTHON_DLL, GetLastError());
        return NO_PYTHON;
    }
    if (on_wine()) {
        HRESULT result = answer_for_meta_commands();
        if (FAILED(result)) {
            fprintf(stderr, "Direct3D 12: no device, HRESULT 0x%08lx\n", (unsigned long)result);
            return NO_DEVICE;
        }
    }
    return run(argc, argv);
}
