"""List and describe adapters through DXGI, on Windows."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Final

from dmlconf.backends.directml.api.d3d12 import LUID
from dmlconf.backends.directml.api.guid import GUID
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import function
from dmlconf.backends.directml.api.vtable import (
    IUNKNOWN,
    NEW_OBJECT,
    ComObject,
    Interface,
    Method,
    new_object,
    uncalled,
)

__all__ = [
    "DXGI_ADAPTER_DESC1",
    "DXGI_ADAPTER_FLAG_SOFTWARE",
    "IDXGI_ADAPTER",
    "IDXGI_ADAPTER1",
    "IDXGI_FACTORY",
    "IDXGI_FACTORY1",
    "IDXGI_OBJECT",
    "description",
    "driver_version",
    "dxgi_adapters",
    "version_text",
]

UINT: Final = ctypes.c_uint32
SIZE_T: Final = ctypes.c_size_t
POINTER: Final = ctypes.c_void_p

DXGI_ADAPTER_FLAG_SOFTWARE: Final = 2
DXGI_ERROR_NOT_FOUND: Final = 0x887A0002


class DXGI_ADAPTER_DESC1(ctypes.Structure):
    """DXGI's description of an adapter."""

    _fields_ = (
        ("Description", ctypes.c_uint16 * 128),
        ("VendorId", UINT),
        ("DeviceId", UINT),
        ("SubSysId", UINT),
        ("Revision", UINT),
        ("DedicatedVideoMemory", SIZE_T),
        ("DedicatedSystemMemory", SIZE_T),
        ("SharedSystemMemory", SIZE_T),
        ("AdapterLuid", LUID),
        ("Flags", UINT),
    )


IDXGI_OBJECT: Final = Interface(
    "IDXGIObject",
    "aec22fb8-76f3-4639-9be0-28eb43a67a2e",
    IUNKNOWN,
    uncalled("SetPrivateData SetPrivateDataInterface GetPrivateData GetParent"),
)

IDXGI_ADAPTER: Final = Interface(
    "IDXGIAdapter",
    "2411e7e1-12ac-4ccf-bd14-9798e8534dc0",
    IDXGI_OBJECT,
    (
        *uncalled("EnumOutputs GetDesc"),
        Method("CheckInterfaceSupport", (ctypes.POINTER(GUID), ctypes.POINTER(ctypes.c_int64))),
    ),
)

IDXGI_ADAPTER1: Final = Interface(
    "IDXGIAdapter1",
    "29038f61-3839-4626-91fd-086879011a05",
    IDXGI_ADAPTER,
    (Method("GetDesc1", (POINTER,)),),
)

IDXGI_FACTORY: Final = Interface(
    "IDXGIFactory",
    "7b7166ec-21c7-44ae-b21a-c9ae321ae369",
    IDXGI_OBJECT,
    uncalled(
        "EnumAdapters MakeWindowAssociation GetWindowAssociation CreateSwapChain "
        "CreateSoftwareAdapter"
    ),
)

IDXGI_FACTORY1: Final = Interface(
    "IDXGIFactory1",
    "770aae78-f26f-4dba-a829-253c83d1b387",
    IDXGI_FACTORY,
    (Method("EnumAdapters1", (UINT, ctypes.POINTER(POINTER))), *uncalled("IsCurrent")),
)

_IDXGI_DEVICE: Final = "54ec77fa-1377-44e6-8c32-88fd5f44c84c"


def dxgi_adapters(library: ctypes.CDLL) -> Iterator[ComObject]:
    """Yield every adapter that DXGI lists; the caller must release each.

    Args:
        library: dxgi.dll.

    Raises:
        LibraryError: the library is not DXGI.
        HResultError: DXGI fails.
        NativeCrashError: DXGI crashed.
    """
    create = function(library, "CreateDXGIFactory1", *NEW_OBJECT)
    with new_object("CreateDXGIFactory1", create, IDXGI_FACTORY1) as factory:
        for index in range(1 << 16):
            pointer = ctypes.c_void_p()
            try:
                factory.call("EnumAdapters1", index, ctypes.byref(pointer))
            except HResultError as error:
                if error.hresult == DXGI_ERROR_NOT_FOUND:
                    return
                raise
            yield ComObject(IDXGI_ADAPTER1, pointer.value or 0)


def description(adapter: ComObject) -> DXGI_ADAPTER_DESC1:
    """Return DXGI's description of the adapter; `HResultError` if the call fails."""
    desc = DXGI_ADAPTER_DESC1()
    adapter.call("GetDesc1", ctypes.byref(desc))
    return desc


def driver_version(adapter: ComObject) -> str | None:
    """Return the version of the adapter's driver, or None if DXGI does not say it."""
    version = ctypes.c_int64()
    interface = GUID.parse(_IDXGI_DEVICE)
    try:
        adapter.call("CheckInterfaceSupport", ctypes.byref(interface), ctypes.byref(version))
    except HResultError:
        return None
    return version_text(version.value)


def version_text(version: int) -> str:
    """Return a version of four 16-bit numbers as Windows writes it: `31.0.15.1694`."""
    return ".".join(str(version >> shift & 0xFFFF) for shift in (48, 32, 16, 0))
