"""Write to read-only memory on Linux, and put machine code into new memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ["executable", "overwrite", "readable"]

_MAPPING: Final = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) ([r-])([w-])([x-])")
_READ, _WRITE, _EXECUTE = 1, 2, 4
"""Values of PROT_READ, PROT_WRITE and PROT_EXEC."""

_kept: Final[list[mmap.mmap]] = []
"""Machine code, which is never freed."""


def readable(address: int) -> bool:
    """Return whether memory at an address can be read."""
    return bool((_protection(address) or 0) & _READ)


def overwrite(address: int, content: bytes) -> None:
    """Write to memory that may be read-only, within one page.

    Raises:
        OSError: there is no memory, or the system does not permit it.
    """
    before = _protection(address)
    if before is None:
        raise OSError(f"there is no memory at {address:#x}")
    if before & _WRITE:
        ctypes.memmove(address, content, len(content))
        return
    _protect(address, before | _WRITE)
    ctypes.memmove(address, content, len(content))
    _protect(address, before)


def executable(code: bytes) -> int:
    """Put machine code into new executable memory, never freed, and return its address."""
    memory = mmap.mmap(-1, len(code), prot=_READ | _WRITE | _EXECUTE)
    memory.write(code)
    _kept.append(memory)
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _protection(address: int) -> int | None:
    """Return the protection of the memory at an address; None if there is no memory."""
    for line in Path("/proc/self/maps").read_bytes().splitlines():
        match = _MAPPING.match(line)
        if match is not None and int(match[1], 16) <= address < int(match[2], 16):
            flags = zip(match.groups()[2:], (_READ, _WRITE, _EXECUTE), strict=True)
            return sum(flag for letter, flag in flags if letter != b"-")
    return None


def _protect(address: int, protection: int) -> None:
    page = address & -mmap.PAGESIZE
    if _libc().mprotect(page, mmap.PAGESIZE, protection):
        raise OSError(ctypes.get_errno(), f"mprotect: {os.strerror(ctypes.get_errno())}")


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
