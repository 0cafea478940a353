"""List and describe adapters through DXCore: in WSL 2, which has no DXGI, and NPUs on Windows."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final

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
    "IDXCORE_ADAPTER",
    "IDXCORE_ADAPTER_FACTORY",
    "IDXCORE_ADAPTER_LIST",
    "DXCoreAdapterProperty",
    "DXCoreHardwareID",
    "dxcore_adapters",
    "read_property",
    "read_text",
]

_SIZE: Final = ctypes.POINTER(ctypes.c_size_t)

DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE: Final = "248e2800-a793-4724-abaa-23a6de1be090"
DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML: Final = "b71b0d41-1088-422f-a27c-0250b7d3a988"


class DXCoreAdapterProperty(IntEnum):
    """The adapter properties that dmlconf reads."""

    InstanceLuid = 0
    DriverVersion = 1
    DriverDescription = 2
    HardwareID = 3
    DedicatedAdapterMemory = 7
    SharedSystemMemory = 9
    IsHardware = 11


class DXCoreHardwareID(ctypes.Structure):
    """The vendor and the device of an adapter, as PCI numbers."""

    _fields_ = (
        ("vendorID", ctypes.c_uint32),
        ("deviceID", ctypes.c_uint32),
        ("subSysID", ctypes.c_uint32),
        ("revision", ctypes.c_uint32),
    )


IDXCORE_ADAPTER: Final = Interface(
    "IDXCoreAdapter",
    "f0db4c7f-fe5a-42a2-bd62-f2a6cf6fc83e",
    IUNKNOWN,
    (
        *uncalled("IsValid IsAttributeSupported"),
        Method("IsPropertySupported", (ctypes.c_uint32,), ctypes.c_bool),
        Method("GetProperty", (ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p)),
        Method("GetPropertySize", (ctypes.c_uint32, _SIZE)),
        *uncalled("IsQueryStateSupported QueryState IsSetStateSupported SetState GetFactory"),
    ),
)

IDXCORE_ADAPTER_LIST: Final = Interface(
    "IDXCoreAdapterList",
    "526c7776-40e9-459b-b711-f32ad76dfc28",
    IUNKNOWN,
    (
        Method("GetAdapter", (ctypes.c_uint32, *NEW_OBJECT)),
        Method("GetAdapterCount", (), ctypes.c_uint32),
        *uncalled("IsStale GetFactory Sort IsAdapterPreferenceSupported"),
    ),
)

IDXCORE_ADAPTER_FACTORY: Final = Interface(
    "IDXCoreAdapterFactory",
    "78ee5945-c36e-4b13-a669-005dd11c0f06",
    IUNKNOWN,
    (
        Method("CreateAdapterList", (ctypes.c_uint32, ctypes.POINTER(GUID), *NEW_OBJECT)),
        *uncalled(
            "GetAdapterByLuid IsNotificationTypeSupported RegisterEventNotification "
            "UnregisterEventNotification"
        ),
    ),
)


def dxcore_adapters(library: ctypes.CDLL) -> Iterator[ComObject]:
    """Yield the adapters that can compute with Direct3D 12; the caller must release each.

    Adapters with the attribute CORE_COMPUTE come first, then those with GENERIC_ML, such as NPUs.
    An adapter with both comes twice.

    Args:
        library: libdxcore.so or dxcore.dll.

    Raises:
        LibraryError: the library is not DXCore.
        HResultError: DXCore fails before it has listed the adapters with CORE_COMPUTE.
        NativeCrashError: DXCore crashed.
    """
    create = function(library, "DXCoreCreateAdapterFactory", *NEW_OBJECT)
    with new_object("DXCoreCreateAdapterFactory", create, IDXCORE_ADAPTER_FACTORY) as factory:
        yield from _adapters(factory, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE)
        # An older DXCore may refuse this attribute.
        with suppress(HResultError):
            yield from _adapters(factory, DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML)


def _adapters(factory: ComObject, attribute: str) -> Iterator[ComObject]:
    guid = GUID.parse(attribute)
    with factory.create(
        "CreateAdapterList", IDXCORE_ADAPTER_LIST, 1, ctypes.byref(guid)
    ) as adapters:
        for index in range(adapters.call("GetAdapterCount")):
            yield adapters.create("GetAdapter", IDXCORE_ADAPTER, index)


def read_property(adapter: ComObject, which: DXCoreAdapterProperty, into: Any) -> Any:
    """Read a property into a ctypes value, and return the value.

    The value is unchanged if the adapter lacks the property or refuses to read it.
    """
    if adapter.call("IsPropertySupported", which):
        try:
            adapter.call("GetProperty", which, ctypes.sizeof(into), ctypes.byref(into))
        except HResultError:
            return into
    return into


def read_text(adapter: ComObject, which: DXCoreAdapterProperty) -> str:
    """Return a property that is UTF-8 text, or an empty text if the adapter lacks the property.

    Raises:
        HResultError: the property cannot be read.
    """
    if not adapter.call("IsPropertySupported", which):
        return ""
    size = ctypes.c_size_t()
    adapter.call("GetPropertySize", which, ctypes.byref(size))
    text = ctypes.create_string_buffer(max(size.value, 1))
    adapter.call("GetProperty", which, size.value, text)
    return text.value.decode("utf-8", "replace")
