"""Find a loaded DirectML on Windows, and replace what it exports.

Libraries and `GetProcAddress` take the address of a function from its library's export table. A
change there affects later lookups, and Windows reports a loaded library before any lookup.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Iterator
from typing import Any, Final

from dmlconf.capture.hooking.systems.common import Export, Write, jump_to
from dmlconf.capture.hooking.systems.windows_loading import LIBRARY, LoadNotification
from dmlconf.capture.hooking.systems.windows_memory import (
    executable,
    overwrite,
    readable,
    windows_library,
)

__all__ = [
    "LoadNotification",
    "export",
    "imports",
    "library_file",
    "loaded_modules",
    "overwrite",
    "readable",
    "redirection",
    "refusal",
]

_REACH: Final = 1 << 32
"""How far a function may lie from its library's beginning: export tables have 32-bit offsets."""

_LONGEST_PATH: Final = 1 << 15


def refusal() -> str | None:
    """Return why capture does not work on this system; None if it does."""
    if platform.machine() not in ("AMD64", "x86_64"):
        return f"capture works on x86-64 processors, and this one is {platform.machine()}"
    return None


def loaded_modules() -> tuple[int, ...]:
    """Return the address of the loaded DirectML, if any."""
    get = windows_library("kernel32").GetModuleHandleW
    get.restype = ctypes.c_void_p
    get.argtypes = (ctypes.c_wchar_p,)
    module = get(LIBRARY)
    return () if module is None else (int(module),)


def library_file(module: int) -> str:
    """Return the path of a loaded library; empty if no library is at the address."""
    get = windows_library("kernel32").GetModuleFileNameW
    get.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32)
    text = ctypes.create_unicode_buffer(_LONGEST_PATH)
    get(module, text, _LONGEST_PATH)
    return text.value


def export(module: int, name: str) -> Export:
    """Return a function that a library exports.

    Source: the page "PE Format" of Microsoft's documentation.

    Raises:
        LookupError: the library exports no function of this name.
    """
    exports = _number(ctypes.c_uint32, module, _optional_header(module) + 112)
    if not exports:
        raise LookupError(f"the library exports nothing, and so not {name}")
    count, functions, names, ordinals = (
        _number(ctypes.c_uint32, module, exports + offset) for offset in (24, 28, 32, 36)
    )
    for index in range(count):
        text = ctypes.string_at(module + _number(ctypes.c_uint32, module, names + 4 * index))
        if text == name.encode("ascii"):
            ordinal = _number(ctypes.c_uint16, module, ordinals + 2 * index)
            entry = functions + 4 * ordinal
            function = module + _number(ctypes.c_uint32, module, entry)
            return Export(module, name, module + entry, function)
    raise LookupError(f"the library does not export {name}")


def redirection(exported: Export, target: int) -> Write:
    """Return what to write so that later lookups of a function find another one.

    Raises:
        OSError: no memory is free within reach of the library.
    """
    module = exported.module
    size = _number(ctypes.c_uint32, module, _optional_header(module) + 56)
    stub = executable(jump_to(target), (module + size, module + _REACH))
    return exported.entry, struct.pack("<I", stub - module)


def imports(name: str, function: int, target: int) -> Iterator[Write]:
    """Yield nothing: libraries that are bound to a function stay bound to it."""
    del name, function, target
    yield from ()


def _optional_header(module: int) -> int:
    return _number(ctypes.c_uint32, module, 0x3C) + 24


def _number(kind: Any, module: int, offset: int) -> int:
    return int(kind.from_address(module + offset).value)
