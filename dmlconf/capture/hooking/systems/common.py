"""Machine code, exported functions and writes to memory, for Windows and Linux."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Export", "Write", "address_of", "jump_to"]

Write = tuple[int, bytes]
"""An address, and the bytes that are to be written there."""

_JUMP: Final = b"\xff\x25\x00\x00\x00\x00"
"""`jmp [rip]`, followed by the address to jump to."""


@dataclass(frozen=True, slots=True)
class Export:
    """A function that a loaded library exports.

    Attributes:
        module: the address of the library.
        entry: the address of the function's entry in the table of exports.
        function: the address of the function.
    """

    module: int
    name: str
    entry: int
    function: int


def address_of(callback: Any) -> int:
    """Return the address at which native code can call a `ctypes` function."""
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


def jump_to(target: int) -> bytes:
    """Return 14 bytes of machine code that jump to an address."""
    return _JUMP + struct.pack("<Q", target)
