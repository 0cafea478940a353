"""Replace entries of vtables and of export tables in this process, and restore the original ones.

A vtable is a static part of a library, so replacing an entry affects all objects that use it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from dmlconf.backends.directml.api.vtable import ACCESS_VIOLATION, Interface, method_type
from dmlconf.capture.hooking.memory import address_of, executable, overwrite

__all__ = ["Patches", "exported_entry", "supported"]

_POINTER_BYTES: Final = ctypes.sizeof(ctypes.c_void_p)
_REACH: Final = 1 << 32
"""How far from its library's beginning a function may lie: export tables hold 32-bit distances."""

_JUMP: Final = b"\xff\x25\x00\x00\x00\x00"
"""`jmp [rip]`, followed by the address to jump to."""

_Hook = Callable[..., Any]


def supported() -> str | None:
    """Return why entries cannot be replaced on this system; None if they can."""
    if os.name != "nt":
        return "capture works on Windows and in the Wine lab"
    if platform.machine() not in ("AMD64", "x86_64"):
        return f"capture works on x86-64 processors, and this one is {platform.machine()}"
    return None


@dataclass(frozen=True, slots=True)
class _Replaced:
    """An entry that was replaced.

    Attributes:
        content: the original bytes.
        kept: the function that is called instead; it must stay alive.
    """

    content: bytes
    replacement: bytes
    kept: Any


class Patches:
    """Replaces entries, and puts the original ones back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._replaced: dict[int, _Replaced] = {}
        self._kept: list[Any] = []

    def replace_method(
        self, address: int, interface: Interface, name: str, make: Callable[[_Hook], _Hook]
    ) -> None:
        """Replace, once, a method of all objects that share an object's vtable.

        Args:
            make: returns what is called instead, given the original function.
        """
        slot, method = interface.slots[name]
        table = ctypes.c_void_p.from_address(address).value or 0
        entry = table + slot * _POINTER_BYTES
        with self._lock:
            if entry in self._replaced:
                return
            kind: Any = method_type(method)
            before = ctypes.c_void_p.from_address(entry).value or 0
            callback = kind(make(_or_end(kind(before))))
            self._write(entry, struct.pack("<Q", address_of(callback)), callback)

    def replace_export(
        self, module: int, name: str, kind: Any, make: Callable[[_Hook], _Hook]
    ) -> None:
        """Replace a function that a library exports, for all that look it up from now on.

        Args:
            module: the address of the loaded library.
            kind: the ctypes type of the function.
        """
        entry, size = exported_entry(module, name)
        with self._lock:
            if entry in self._replaced:
                return
            before = module + ctypes.c_uint32.from_address(entry).value
            callback = kind(make(_or_end(kind(before))))
            stub = _stub(module, size, address_of(callback))
            self._write(entry, struct.pack("<I", stub - module), callback)

    def forget(self, module: int, size: int) -> None:
        """Forget the entries in a library that is unloaded."""
        with self._lock:
            for entry in [each for each in self._replaced if module <= each < module + size]:
                self._kept.append(self._replaced.pop(entry))

    def remove(self) -> None:
        """Put back entries that nobody else replaced; running replacements still run to the end."""
        with self._lock:
            while self._replaced:
                entry, replaced = self._replaced.popitem()
                self._kept.append(replaced)
                if ctypes.string_at(entry, len(replaced.content)) == replaced.replacement:
                    overwrite(entry, replaced.content)

    def _write(self, entry: int, content: bytes, kept: Any) -> None:
        before = ctypes.string_at(entry, len(content))
        self._replaced[entry] = _Replaced(before, content, kept)
        overwrite(entry, content)


def _or_end(original: _Hook) -> _Hook:
    """Return a function that calls a native one and, if that crashes, ends the process.

    ctypes turns an exception of the processor into a Python exception; the application would then
    go on with the result 0, which is S_OK.
    """

    def called(*arguments: Any) -> Any:
        try:
            return original(*arguments)
        except OSError:
            os._exit(ACCESS_VIOLATION)

    return called


def _stub(module: int, size: int, target: int) -> int:
    """Put a jump to `target` into memory within reach of a library, and return its address."""
    return executable(_JUMP + struct.pack("<Q", target), (module + size, module + _REACH))


def exported_entry(module: int, name: str) -> tuple[int, int]:
    """Return the address of a function's entry in a library's export table, and the library's size.

    Source: the page "PE Format" of Microsoft's documentation.

    Raises:
        LookupError: the library exports no function of this name.
    """

    def number(kind: Any, offset: int) -> int:
        return int(kind.from_address(module + offset).value)

    header = number(ctypes.c_uint32, 0x3C)
    optional = header + 24
    size = number(ctypes.c_uint32, optional + 56)
    exports = number(ctypes.c_uint32, optional + 112)
    if not exports:
        raise LookupError(f"the library exports nothing, and so not {name}")
    count, functions, names, ordinals = (
        number(ctypes.c_uint32, exports + offset) for offset in (24, 28, 32, 36)
    )
    for index in range(count):
        text = ctypes.string_at(module + number(ctypes.c_uint32, names + 4 * index))
        if text == name.encode("ascii"):
            ordinal = number(ctypes.c_uint16, ordinals + 2 * index)
            return module + functions + 4 * ordinal, size
    raise LookupError(f"the library does not export {name}")
