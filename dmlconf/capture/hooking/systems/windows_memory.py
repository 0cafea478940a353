"""Write to read-only memory on Windows, and put machine code into new memory."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

__all__ = ["executable", "overwrite", "readable", "windows_library"]

_READ_WRITE_EXECUTE: Final = 0x40
_COMMIT_AND_RESERVE: Final = 0x3000
_GRANULARITY: Final = 1 << 16


@cache
def windows_library(name: str) -> Any:
    """Return a library of Windows.

    Raises:
        OSError: this is another system.
    """
    if sys.platform == "win32":
        return ctypes.WinDLL(name)
    raise OSError(f"{name} exists on Windows only")


@cache
def _kernel32() -> Any:
    library = windows_library("kernel32")
    pointer, number, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
    library.VirtualAlloc.restype = pointer
    library.VirtualAlloc.argtypes = (pointer, size, number, number)
    library.VirtualProtect.argtypes = (pointer, size, number, pointer)
    library.IsBadReadPtr.argtypes = (pointer, size)
    return library


def readable(address: int) -> bool:
    """Return whether memory at an address can be read."""
    return not _kernel32().IsBadReadPtr(address, 1)


def overwrite(address: int, content: bytes) -> None:
    """Write to memory that may be read-only.

    Raises:
        OSError: the system does not permit it.
    """
    kernel = _kernel32()
    before = ctypes.c_uint32()
    size = len(content)
    if not kernel.VirtualProtect(address, size, _READ_WRITE_EXECUTE, ctypes.byref(before)):
        raise OSError("VirtualProtect does not let it be written")
    ctypes.memmove(address, content, size)
    kernel.VirtualProtect(address, size, before.value, ctypes.byref(before))


def executable(code: bytes, between: tuple[int, int] | None = None) -> int:
    """Put machine code into new executable memory, never freed, and return its address.

    Args:
        between: addresses between which the code must lie; None for anywhere.

    Raises:
        OSError: no memory is free there.
    """
    starts: Any = (None,)
    if between is not None:
        first = -(-between[0] // _GRANULARITY) * _GRANULARITY
        starts = range(first, between[1] - _GRANULARITY, _GRANULARITY)
    kernel = _kernel32()
    for start in starts:
        address = kernel.VirtualAlloc(start, len(code), _COMMIT_AND_RESERVE, _READ_WRITE_EXECUTE)
        if address:
            ctypes.memmove(address, code, len(code))
            return int(address)
    raise OSError("there is no room for machine code")
