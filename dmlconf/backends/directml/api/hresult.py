"""HRESULTs of COM, Direct3D, DXGI and DXCore: names, meanings, and the error of a failed call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["HRESULTS", "HResultError", "failed", "is_removal", "meaning", "name", "unsigned"]

HRESULTS: Final[Mapping[int, tuple[str, str]]] = {
    0x00000000: ("S_OK", "it succeeded"),
    0x00000001: ("S_FALSE", "it succeeded, but did nothing or only part of the work"),
    0x087A0001: ("DXGI_STATUS_OCCLUDED", "the window is not visible"),
    0x087A0002: ("DXGI_STATUS_CLIPPED", "part of the window was not drawn"),
    0x087A0004: ("DXGI_STATUS_NO_REDIRECTION", "the output is not redirected"),
    0x087A0005: ("DXGI_STATUS_NO_DESKTOP_ACCESS", "the desktop cannot be reached"),
    0x087A0006: ("DXGI_STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE", "another application owns the output"),
    0x087A0007: ("DXGI_STATUS_MODE_CHANGED", "the display mode changed"),
    0x087A0008: ("DXGI_STATUS_MODE_CHANGE_IN_PROGRESS", "the display mode is changing"),
    0x80004001: ("E_NOTIMPL", "not implemented"),
    0x80004002: ("E_NOINTERFACE", "the object lacks the interface"),
    0x80004003: ("E_POINTER", "a pointer is null or invalid"),
    0x80004004: ("E_ABORT", "it was aborted"),
    0x80004005: ("E_FAIL", "unspecified failure"),
    0x8000FFFF: ("E_UNEXPECTED", "something unexpected happened"),
    0x80070005: ("E_ACCESSDENIED", "access is denied"),
    0x80070006: ("E_HANDLE", "a handle is invalid"),
    0x8007000E: ("E_OUTOFMEMORY", "there is not enough memory"),
    0x80070032: ("ERROR_NOT_SUPPORTED", "the request is not supported"),
    0x80070057: ("E_INVALIDARG", "an argument is invalid"),
    0x8007007E: ("ERROR_MOD_NOT_FOUND", "a module was not found"),
    0x8007007F: ("ERROR_PROC_NOT_FOUND", "a function was not found in its module"),
    0x8876021C: ("D3DERR_WASSTILLDRAWING", "an earlier operation has not ended"),
    0x8876086C: ("D3DERR_INVALIDCALL", "the call is invalid"),
    0x887A0001: ("DXGI_ERROR_INVALID_CALL", "the application made an invalid call"),
    0x887A0002: ("DXGI_ERROR_NOT_FOUND", "there is no such object"),
    0x887A0003: ("DXGI_ERROR_MORE_DATA", "the buffer is too small"),
    0x887A0004: ("DXGI_ERROR_UNSUPPORTED", "the device or the driver does not support it"),
    0x887A0005: ("DXGI_ERROR_DEVICE_REMOVED", "the device was removed, or its driver was replaced"),
    0x887A0006: ("DXGI_ERROR_DEVICE_HUNG", "the device took too long or got malformed commands"),
    0x887A0007: ("DXGI_ERROR_DEVICE_RESET", "the device failed because of a malformed command"),
    0x887A000A: ("DXGI_ERROR_WAS_STILL_DRAWING", "the device was busy"),
    0x887A000B: ("DXGI_ERROR_FRAME_STATISTICS_DISJOINT", "frame statistics were interrupted"),
    0x887A000C: ("DXGI_ERROR_GRAPHICS_VIDPN_SOURCE_IN_USE", "another application owns the output"),
    0x887A0020: ("DXGI_ERROR_DRIVER_INTERNAL_ERROR", "the driver had an internal error"),
    0x887A0021: ("DXGI_ERROR_NONEXCLUSIVE", "a counter is in use elsewhere"),
    0x887A0022: ("DXGI_ERROR_NOT_CURRENTLY_AVAILABLE", "the resource is not available now"),
    0x887A0023: ("DXGI_ERROR_REMOTE_CLIENT_DISCONNECTED", "the remote client disconnected"),
    0x887A0024: ("DXGI_ERROR_REMOTE_OUTOFMEMORY", "the remote client is out of memory"),
    0x887A0025: ("DXGI_ERROR_MODE_CHANGE_IN_PROGRESS", "the display mode is changing"),
    0x887A0026: ("DXGI_ERROR_ACCESS_LOST", "the desktop was lost"),
    0x887A0027: ("DXGI_ERROR_WAIT_TIMEOUT", "it was not ready in time"),
    0x887A0028: ("DXGI_ERROR_SESSION_DISCONNECTED", "the session is disconnected"),
    0x887A0029: ("DXGI_ERROR_RESTRICT_TO_OUTPUT_STALE", "the output to restrict to is gone"),
    0x887A002A: ("DXGI_ERROR_CANNOT_PROTECT_CONTENT", "the content cannot be protected"),
    0x887A002B: ("DXGI_ERROR_ACCESS_DENIED", "the resource does not permit the access"),
    0x887A002C: ("DXGI_ERROR_NAME_ALREADY_EXISTS", "the name is taken"),
    0x887A002D: ("DXGI_ERROR_SDK_COMPONENT_MISSING", "a component of the SDK is not installed"),
    0x887A002E: ("DXGI_ERROR_NOT_CURRENT", "the object is out of date"),
    0x887A0030: ("DXGI_ERROR_HW_PROTECTION_OUTOFMEMORY", "protected memory is used up"),
    0x887A0031: ("DXGI_ERROR_DYNAMIC_CODE_POLICY_VIOLATION", "the policy forbids generated code"),
    0x887A0032: ("DXGI_ERROR_NON_COMPOSITED_UI", "the user interface is not composited"),
    0x887A0036: ("DXGI_ERROR_ALREADY_EXISTS", "the object exists already"),
    0x887B0001: ("DXGI_DDI_ERR_WASSTILLDRAWING", "the driver was busy"),
    0x887B0002: ("DXGI_DDI_ERR_UNSUPPORTED", "the driver does not support it"),
    0x887B0003: ("DXGI_DDI_ERR_NONEXCLUSIVE", "a counter of the driver is in use elsewhere"),
    0x887C0001: ("D3D11_ERROR_TOO_MANY_UNIQUE_STATE_OBJECTS", "there are too many state objects"),
    0x887C0002: ("D3D11_ERROR_FILE_NOT_FOUND", "a file was not found"),
    0x887E0001: ("D3D12_ERROR_ADAPTER_NOT_FOUND", "the cached pipeline is for another adapter"),
    0x887E0002: (
        "D3D12_ERROR_DRIVER_VERSION_MISMATCH",
        "the cached pipeline is for another driver",
    ),
    0x887E0003: ("D3D12_ERROR_INVALID_REDIST", "the redistributable of Direct3D 12 is invalid"),
    0x88800001: ("DXCORE_ERROR_EVENT_NOT_UNREGISTERED", "a notification is still registered"),
}
"""Name and meaning by value. Source: winerror.h, d3d12.h, dxcore_interface.h and their pages."""

_REMOVALS: Final = frozenset({0x887A0005, 0x887A0006, 0x887A0007, 0x887A0020})
"""HRESULTs after which the device cannot be used, whichever call returns them."""


def unsigned(hresult: int) -> int:
    """Return the HRESULT as the headers write it, from 0 to 2**32 - 1."""
    return hresult & 0xFFFF_FFFF


def failed(hresult: int) -> bool:
    """Return whether the HRESULT says that the call failed."""
    return unsigned(hresult) >= 0x8000_0000


def name(hresult: int) -> str:
    """Return the HRESULT's name, or its digits, such as `0x80040154`, if `HRESULTS` lacks it."""
    value = unsigned(hresult)
    known = HRESULTS.get(value)
    return known[0] if known else f"0x{value:08X}"


def meaning(hresult: int) -> str:
    """Return what the HRESULT means, in one line; empty if `HRESULTS` lacks it."""
    known = HRESULTS.get(unsigned(hresult))
    return known[1] if known else ""


def is_removal(hresult: int) -> bool:
    """Return whether the HRESULT says that the device cannot be used any more."""
    return unsigned(hresult) in _REMOVALS


class HResultError(Exception):
    """A call, such as `CreateOperator`, that returned a failing HRESULT.

    E_POINTER also stands for a call that succeeded without returning an object.
    """

    def __init__(self, call: str, hresult: int) -> None:
        self.call = call
        self.hresult = unsigned(hresult)
        super().__init__(call, self.hresult)

    @property
    def name(self) -> str:
        """The HRESULT's name or digits, as the function `name` returns them."""
        return name(self.hresult)

    def __str__(self) -> str:
        description = meaning(self.hresult)
        return f"{self.call}: {self.name}" + (f" ({description})" if description else "")
