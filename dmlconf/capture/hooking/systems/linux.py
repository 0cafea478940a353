"""Find a loaded DirectML on Linux, and replace what it exports.

The dynamic linker takes the address of a function from its library's table of symbols. A change
there affects `dlsym` and libraries that are bound later. Libraries that are bound already have
slots with the address, which are changed as well.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dmlconf.backends.directml.api.library import wsl_folder
from dmlconf.capture.hooking.systems.common import Export, Write
from dmlconf.capture.hooking.systems.elf import Library, Symbol, loaded_libraries
from dmlconf.capture.hooking.systems.linux_loading import (
    LoadNotification,
    debugged,
    is_directml,
)
from dmlconf.capture.hooking.systems.linux_memory import overwrite, readable

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

_WORD: Final = (1 << 64) - 1


def refusal() -> str | None:
    """Return why capture does not work on this system; None if it does."""
    if sys.platform != "linux":
        return "capture works on Windows, in WSL 2 and in the Wine lab"
    folder = wsl_folder()
    if not (folder / "libd3d12.so").is_file():
        where = f"{folder} has no libd3d12.so, which Windows puts there in WSL 2"
        return f"capture works on Windows, in WSL 2 and in the Wine lab; {where}"
    if platform.machine() != "x86_64":
        return f"capture works on x86-64 processors, and this one is {platform.machine()}"
    try:
        debugged()
    except OSError as error:
        return f"capture works in WSL 2 with glibc: {error}"
    return None


def loaded_modules() -> tuple[int, ...]:
    """Return the address of each loaded DirectML."""
    return tuple(library.base for library in loaded_libraries() if is_directml(library))


def library_file(module: int) -> str:
    """Return the path of a loaded library.

    Raises:
        LookupError: no library is at the address.
    """
    return str(Path(_library(module).path).absolute())


def export(module: int, name: str) -> Export:
    """Return a function that a library exports.

    Raises:
        LookupError: no library is at the address, or it exports no function of this name.
    """
    entry = _library(module).exported(name)
    function = module + int(Symbol.from_address(entry).st_value) & _WORD
    return Export(module, name, entry + Symbol.st_value.offset, function)


def redirection(exported: Export, target: int) -> Write:
    """Return what to write so that later lookups of a function find another one."""
    return exported.entry, struct.pack("<Q", target - exported.module & _WORD)


def imports(name: str, function: int, target: int) -> Iterator[Write]:
    """Yield what to write so that libraries that are bound to a function call another one."""
    for library in loaded_libraries():
        for slot in library.slots(name):
            if ctypes.c_uint64.from_address(slot).value == function:
                yield slot, struct.pack("<Q", target)


def _library(module: int) -> Library:
    for library in loaded_libraries():
        if library.base == module:
            return library
    raise LookupError(f"no library is at {module:#x}")
