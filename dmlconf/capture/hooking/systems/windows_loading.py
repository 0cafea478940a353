"""Learn on Windows when DirectML is loaded into this process or unloaded.

Windows calls back for every library, on any thread and under its loader's lock. Python code may
then wait forever for the interpreter's lock, which ONNX Runtime keeps while another thread loads
libraries. So machine instructions check the name's length and first four characters, and call
Python only if both are right.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Final

from dmlconf.backends.directml.api.vtable import prototype
from dmlconf.capture.hooking.systems.common import address_of
from dmlconf.capture.hooking.systems.windows_memory import executable, windows_library

__all__ = ["LIBRARY", "LoadNotification"]

LIBRARY: Final = "directml.dll"
"""The file name of DirectML in lower case.

The machine instructions that look for it need a name of 4 to 63 characters.
"""

_LOADED: Final = 1
_UNLOADED: Final = 2


class _UnicodeString(ctypes.Structure):
    _fields_ = (
        ("Length", ctypes.c_uint16),
        ("MaximumLength", ctypes.c_uint16),
        ("Buffer", ctypes.c_void_p),
    )


class _NotificationData(ctypes.Structure):
    _fields_ = (
        ("Flags", ctypes.c_uint32),
        ("FullDllName", ctypes.POINTER(_UnicodeString)),
        ("BaseDllName", ctypes.POINTER(_UnicodeString)),
        ("DllBase", ctypes.c_void_p),
        ("SizeOfImage", ctypes.c_uint32),
    )


_FILTER: Final = (
    "48 8b 42 10"  # rax = data->BaseDllName
    "66 83 38 {length}"  # is rax->Length the wanted one?
    "75 2f"
    "48 8b 40 08"  # rax = rax->Buffer
    "4c 8b 08"  # r9 = its first 4 characters
    "49 ba 20 00 20 00 20 00 20 00"
    "4d 09 d1"  # in lower case
    "49 ba {beginning}"
    "4d 39 d1"  # are they the wanted ones?
    "75 0c"
    "48 b8 {target}"
    "ff e0"  # go on in Python
    "c3"
)
"""The machine instructions that Windows calls, for x86-64."""


class LoadNotification:
    """Calls functions when DirectML is loaded or unloaded.

    The functions run under the loader's lock, and must not load any library.
    """

    def __init__(self, loaded: Callable[[int], None], unloaded: Callable[[int, int], None]) -> None:
        """Begin to watch.

        Args:
            loaded: gets the address of the library.
            unloaded: gets the address and the size of the library.

        Raises:
            OSError: the system has no such notifications, or no room for machine code.
        """
        self._ntdll = windows_library("ntdll")

        def notified(reason: int, data: Any, context: int | None) -> None:
            parts = data.contents
            if _text(parts.BaseDllName).lower() != LIBRARY:
                return
            if reason == _LOADED:
                loaded(parts.DllBase)
            elif reason == _UNLOADED:
                unloaded(parts.DllBase, parts.SizeOfImage)

        data_pointer = ctypes.POINTER(_NotificationData)
        kind: Any = prototype(None, ctypes.c_uint32, data_pointer, ctypes.c_void_p)
        self._callback = kind(notified)
        self._filter = executable(_filter(address_of(self._callback)))
        self._cookie = ctypes.c_void_p()
        register = self._ntdll.LdrRegisterDllNotification
        register.argtypes = (ctypes.c_uint32, *[ctypes.c_void_p] * 3)
        status = register(0, self._filter, None, ctypes.byref(self._cookie))
        if status:
            raise OSError(f"LdrRegisterDllNotification: {status & 0xFFFFFFFF:#x}")

    def end(self) -> None:
        """Stop watching."""
        self._ntdll.LdrUnregisterDllNotification.argtypes = (ctypes.c_void_p,)
        self._ntdll.LdrUnregisterDllNotification(self._cookie)


def _filter(target: int) -> bytes:
    text = LIBRARY.encode("utf-16-le")
    parts = {"length": bytes([len(text)]), "beginning": text[:8]}
    parts["target"] = struct.pack("<Q", target)
    return bytes.fromhex(_FILTER.format(**{key: part.hex() for key, part in parts.items()}))


def _text(string: Any) -> str:
    if not string:
        return ""
    parts = string.contents
    return ctypes.string_at(parts.Buffer, parts.Length).decode("utf-16-le", "replace")
