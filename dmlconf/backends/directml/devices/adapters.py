"""List the adapters of this machine, and choose one."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from dmlconf.backends.directml.api import dxcore, dxgi
from dmlconf.backends.directml.api.d3d12 import LUID
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import Libraries
from dmlconf.backends.directml.api.vtable import ComObject, NativeCrashError
from dmlconf.backends.protocol import BackendError

__all__ = ["NO_ADAPTER", "Adapter", "Adapters", "choose_adapter"]

NO_ADAPTER: Final = "no adapter supports Direct3D 12: is a driver installed?"

WARP: Final = "warp"
"""The name with which a user selects Microsoft's software adapter."""

_WARP_DEVICE: Final = (0x1414, 0x008C)
"""The `vendor_id` and the `device_id` of Microsoft's software adapter."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter; a number is 0 if it is unknown.

    Attributes:
        index: its number in `Adapters.found`, from 0.
        description: its name; empty if unknown.
        vendor_id: the PCI vendor, such as 0x10de.
        device_id: the PCI device.
        driver_version: the version as Windows writes it, or None if unknown.
        luid: its identifier until the machine restarts, in hexadecimal.
        dedicated_memory: bytes of its own memory.
        software: whether it computes on the CPU, or is not known to be hardware.
        shared_memory: bytes of the machine's memory that it may use.
    """

    index: int
    description: str
    vendor_id: int
    device_id: int
    driver_version: str | None
    luid: str
    dedicated_memory: int
    software: bool
    shared_memory: int = 0

    @property
    def memory(self) -> int | None:
        """Bytes that the adapter can use; None for software, or if `shared_memory` is unknown."""
        reach = self.dedicated_memory + self.shared_memory
        return None if self.software or not self.shared_memory else reach


class Adapters:
    """The adapters of this machine; as a context manager, it releases them at the end.

    Attributes:
        found: the adapters, in the order in which their libraries list them.
    """

    def __init__(self, libraries: Libraries) -> None:
        """List the adapters.

        On Windows, the adapters of DXGI come first, then those that only DXCore knows.

        Raises:
            BackendError: they cannot be listed.
            NativeCrashError: DXGI crashed.
        """
        self.found: tuple[Adapter, ...] = ()
        self._native: list[ComObject] = []
        try:
            self._list(libraries)
        except HResultError as error:
            self.close()
            raise BackendError(f"the adapters cannot be listed: {error}") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the adapters."""
        while self._native:
            self._native.pop().release()

    def native(self, adapter: Adapter) -> ComObject:
        """Return the adapter's native object, which `close` releases."""
        return self._native[adapter.index]

    def _list(self, libraries: Libraries) -> None:
        if sys.platform == "win32":
            for native in dxgi.dxgi_adapters(ctypes.WinDLL("dxgi.dll")):
                self._add(native, _by_dxgi(native, len(self._native)))
            # Windows before version 2004 has no DXCore, and that of Wine does not work.
            with suppress(OSError, BackendError, HResultError, NativeCrashError):
                self._add_by_dxcore(ctypes.WinDLL("dxcore.dll"))
        else:
            assert libraries.folder is not None
            self._add_by_dxcore(ctypes.CDLL(str(libraries.folder / "libdxcore.so")))

    def _add_by_dxcore(self, library: ctypes.CDLL) -> None:
        for native in dxcore.dxcore_adapters(library):
            adapter = _by_dxcore(native, len(self._native))
            if adapter.luid in {known.luid for known in self.found}:
                native.release()
            else:
                self._add(native, adapter)

    def _add(self, native: ComObject, adapter: Adapter) -> None:
        self._native.append(native)
        self.found = (*self.found, adapter)


def _by_dxgi(native: ComObject, index: int) -> Adapter:
    desc = dxgi.description(native)
    return Adapter(
        index=index,
        description=bytes(desc.Description).decode("utf-16-le", "replace").partition("\0")[0],
        vendor_id=desc.VendorId,
        device_id=desc.DeviceId,
        driver_version=dxgi.driver_version(native),
        luid=_luid_text(desc.AdapterLuid),
        dedicated_memory=desc.DedicatedVideoMemory,
        shared_memory=desc.SharedSystemMemory,
        software=bool(desc.Flags & dxgi.DXGI_ADAPTER_FLAG_SOFTWARE),
    )


def _by_dxcore(native: ComObject, index: int) -> Adapter:
    which = dxcore.DXCoreAdapterProperty
    hardware = dxcore.read_property(native, which.HardwareID, dxcore.DXCoreHardwareID())
    version = dxcore.read_property(native, which.DriverVersion, ctypes.c_uint64())
    memory = dxcore.read_property(native, which.DedicatedAdapterMemory, ctypes.c_uint64())
    shared = dxcore.read_property(native, which.SharedSystemMemory, ctypes.c_uint64())
    real = dxcore.read_property(native, which.IsHardware, ctypes.c_bool())
    return Adapter(
        index=index,
        description=dxcore.read_text(native, which.DriverDescription),
        vendor_id=hardware.vendorID,
        device_id=hardware.deviceID,
        driver_version=dxgi.version_text(version.value) if version.value else None,
        luid=_luid_text(dxcore.read_property(native, which.InstanceLuid, LUID())),
        dedicated_memory=memory.value,
        shared_memory=shared.value,
        software=not real.value,
    )


def _luid_text(luid: LUID) -> str:
    return f"{luid.HighPart & 0xFFFF_FFFF:08x}:{luid.LowPart:08x}"


def choose_adapter(selector: str | None, adapters: Iterable[Adapter]) -> Adapter:
    """Return the adapter that the user selects: by index, by part of its name, or `warp`.

    If the user selects none, the first hardware adapter is returned, or else the first of all.

    Raises:
        BackendError: there is no adapter, none matches, or several do.
    """
    candidates = list(adapters)
    if not candidates:
        raise BackendError(NO_ADAPTER)
    if selector is None:
        return next((adapter for adapter in candidates if not adapter.software), candidates[0])
    fitting = [adapter for adapter in candidates if _fits(selector, adapter)]
    if len(fitting) == 1:
        return fitting[0]
    listed = "".join(f"\n  adapter={a.index}: {a.description}" for a in candidates)
    reason = "several adapters match" if fitting else "no adapter matches"
    raise BackendError(f"{reason} {selector!r}; the adapters are:{listed}")


def _fits(selector: str, adapter: Adapter) -> bool:
    if selector.isdecimal():
        return adapter.index == int(selector)
    if selector.casefold() == WARP:
        return (adapter.vendor_id, adapter.device_id) == _WARP_DEVICE
    return selector.casefold() in adapter.description.casefold()
