"""Replace entries of vtables and of exports in this process, and restore them.

A vtable is a static part of a library, so that a replaced entry affects all objects that use it.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.backends.directml.api.vtable import ACCESS_VIOLATION, Interface, method_type
from dmlconf.capture.hooking.systems.common import Export, Write, address_of
from dmlconf.capture.hooking.systems.current import system
from dmlconf.capture.thread_lock import ThreadLock

__all__ = ["Patches"]

_POINTER_BYTES: Final = ctypes.sizeof(ctypes.c_void_p)

_Hook = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Replaced:
    """An entry that was replaced.

    Attributes:
        content: the original bytes.
        replacement: the bytes that were written over them.
        kept: the function that is called instead, which must stay alive.
    """

    content: bytes
    replacement: bytes
    kept: Any


class Patches:
    """Replaces entries, and restores them.

    Attributes:
        removed: whether the original entries were put back; then nothing more is replaced.
    """

    def __init__(self) -> None:
        self._lock = ThreadLock()
        self._replaced: dict[int, _Replaced] = {}
        self._exports: dict[int, tuple[Export, int]] = {}
        self._kept: list[Any] = []
        self.removed = False

    def replace_method(
        self, address: int, interface: Interface, name: str, make: Callable[[_Hook], _Hook]
    ) -> None:
        """Replace, once, a method of all objects that share an object's vtable.

        Args:
            address: the address of the object.
            make: returns what is called instead, given the original function.

        Raises:
            OSError: the system does not permit it.
        """
        slot, method = interface.slots[name]
        table = ctypes.c_void_p.from_address(address).value or 0
        entry = table + slot * _POINTER_BYTES
        with self._lock:
            before = ctypes.c_void_p.from_address(entry).value or 0
            known = self._replaced.get(entry)
            # The entry is the original one again if the library was unloaded and loaded again.
            loaded_again = known is not None and struct.pack("<Q", before) == known.content
            if self.removed or (known is not None and not loaded_again):
                return
            self._kept.append(known)
            kind: Any = method_type(method)
            callback = kind(make(_or_end(kind(before))))
            self._write((entry, struct.pack("<Q", address_of(callback))), callback)

    def replace_export(
        self, module: int, name: str, kind: Any, make: Callable[[_Hook], _Hook]
    ) -> None:
        """Replace, once, a function that a library exports.

        Later lookups find the replacement. On Linux, libraries that are bound already call it, too.

        Args:
            module: the address of the loaded library.
            kind: the ctypes type of the function.
            make: as in `replace_method`.

        Raises:
            LookupError: the library does not export it.
            OSError: the system does not permit it, or no memory is free near the library.
        """
        exported = system.export(module, name)
        with self._lock:
            if exported.entry in self._replaced or self.removed:
                return
            callback = kind(make(_or_end(kind(exported.function))))
            hook = address_of(callback)
            self._write(system.redirection(exported, hook), callback)
            self._exports[exported.entry] = exported, hook
            for address, content in system.imports(name, exported.function, hook):
                system.overwrite(address, content)

    def forget(self, module: int, size: int) -> None:
        """Forget the entries in a library that is unloaded."""
        with self._lock:
            for entry in [each for each in self._replaced if module <= each < module + size]:
                self._kept.append(self._replaced.pop(entry))
                self._exports.pop(entry, None)

    def remove(self) -> None:
        """Put back the entries that nothing else has replaced; replace no more."""
        with self._lock:
            self.removed = True
            for exported, hook in self._exports.values():
                for address, content in system.imports(exported.name, hook, exported.function):
                    system.overwrite(address, content)
            self._exports.clear()
            while self._replaced:
                entry, replaced = self._replaced.popitem()
                self._kept.append(replaced)
                if not system.readable(entry):  # Its library was unloaded.
                    continue
                if ctypes.string_at(entry, len(replaced.content)) == replaced.replacement:
                    system.overwrite(entry, replaced.content)

    def _write(self, write: Write, kept: Any) -> None:
        entry, content = write
        before = ctypes.string_at(entry, len(content))
        try:
            system.overwrite(entry, content)
        finally:  # A write may fail after the bytes have changed.
            if ctypes.string_at(entry, len(content)) == content:
                self._replaced[entry] = _Replaced(before, content, kept)


def _or_end(original: _Hook) -> _Hook:
    """Return a function that calls a native one and, if that crashes, ends the process.

    On Windows, ctypes turns a crash into an exception, after which the application would go on with
    the result 0, which is S_OK.
    """

    def called(*arguments: Any) -> Any:
        try:
            return original(*arguments)
        except OSError:
            os._exit(ACCESS_VIOLATION)

    return called
