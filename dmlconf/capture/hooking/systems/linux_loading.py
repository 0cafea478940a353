"""Learn on Linux when a DirectML is loaded into this process or unloaded.

The dynamic linker calls an empty function for debuggers whenever its list of libraries changes; a
jump is written over that function. glibc before 2.41 calls it before binding new libraries.

The linker holds its lock during the call, and Python code might wait for the interpreter's lock. So
machine instructions look for DirectML, and call Python only if one was loaded or unloaded.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, Final

from dmlconf.backends.directml.api.vtable import prototype
from dmlconf.capture.hooking.systems.common import address_of, jump_to
from dmlconf.capture.hooking.systems.elf import (
    DebugState,
    Library,
    debug_state,
    loaded_libraries,
)
from dmlconf.capture.hooking.systems.linux_memory import executable, overwrite

__all__ = ["LoadNotification", "debugged", "is_directml"]

_NAME: Final = b"libdirectml."
"""The beginning of DirectML's file names: libdirectml.so, and libdirectml.HASH.so in wheels."""

_EMPTY: Final = re.compile(
    rb"(?:\xf3\x0f\x1e\xfa)?"  # endbr64
    rb"\xc3"  # ret
    rb"(?:\x66*\x2e?\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5})|\x66*\x90|\xcc)*",  # nop, int3
    re.DOTALL,
)
"""An empty function, and the padding up to the next one."""

_FUNCTION_BYTES: Final = 16
"""Functions begin at multiples of 16 bytes, so even an empty one has room for a jump of 14."""

_FILTER: Final = (
    "48 b8 {state}"  # rax = the dynamic linker's state
    "83 78 18 00"  # is the list of libraries consistent?
    "75 6a"
    "48 8b 40 08"  # rax = the first library
    "49 b9 {beginning}"
    "31 c9"  # rcx = 0, the sum of the addresses of what is found
    "48 85 c0"  # next library: is there one?
    "74 3a"
    "48 8b 50 08"  # rdx = its path
    "48 89 d6"  # rsi = its file name
    "44 8a 02"  # next character
    "48 ff c2"
    "41 80 f8 2f"  # after a slash, the file name begins
    "48 0f 44 f2"
    "45 84 c0"  # is it the end?
    "75 ed"
    "48 29 f2"
    "48 83 fa 0d"  # is the file name long enough?
    "72 11"
    "4c 39 0e"  # are its first 12 characters the wanted ones?
    "75 0c"
    "81 7e 08 {more}"
    "75 03"
    "48 03 08"  # rcx += the library's address
    "48 8b 40 18"  # rax = the next library
    "eb c1"
    "48 ba {known}"
    "48 3b 0a"  # is the sum what it was?
    "74 0c"
    "48 b8 {target}"
    "ff e0"  # go on in Python
    "c3"
)
"""The machine instructions that the dynamic linker calls, for x86-64."""


def is_directml(library: Library) -> bool:
    """Return whether a library is DirectML, by its file name."""
    return PurePath(library.path).name.startswith(_NAME.decode("ascii"))


def debugged() -> tuple[DebugState, bytes]:
    """Return the dynamic linker's state, and the code of its function for debuggers.

    Raises:
        OSError: the C library is not glibc, or the function is not empty.
    """
    state = debug_state()
    if state is None:
        raise OSError("the C library is not glibc")
    code = ctypes.string_at(state.r_brk, _FUNCTION_BYTES)
    if state.r_brk % _FUNCTION_BYTES or not _EMPTY.fullmatch(code):
        raise OSError(f"the dynamic linker's function for debuggers is unknown: {code.hex(' ')}")
    return state, code


def _libraries() -> Iterator[Library]:
    return filter(is_directml, loaded_libraries())


class LoadNotification:
    """Calls functions when a DirectML is loaded or unloaded.

    The functions run under the dynamic linker's lock, and must not load any library.
    """

    def __init__(self, loaded: Callable[[int], None], unloaded: Callable[[int, int], None]) -> None:
        """Begin to watch.

        Args:
            loaded: gets the address of the library.
            unloaded: gets the address and the size of the library.

        Raises:
            OSError: as `debugged`, or the system does not permit it.
        """
        state, self._before = debugged()
        self._function = int(state.r_brk)
        self._sizes = {each.base: each.size for each in _libraries()}
        self._sum = ctypes.c_uint64(sum(self._sizes))

        def notified() -> None:
            libraries = {each.base: each for each in _libraries()}
            self._sum.value = sum(libraries)
            for module in self._sizes.keys() - libraries.keys():
                unloaded(module, self._sizes.pop(module))
            for module in libraries.keys() - self._sizes.keys():
                self._sizes[module] = libraries[module].size
                loaded(module)

        kind: Any = prototype(None)
        self._callback = kind(notified)
        parts = {
            "state": struct.pack("<Q", ctypes.addressof(state)),
            "beginning": _NAME[:8],
            "more": _NAME[8:],
            "known": struct.pack("<Q", ctypes.addressof(self._sum)),
            "target": struct.pack("<Q", address_of(self._callback)),
        }
        code = _FILTER.format(**{key: part.hex() for key, part in parts.items()})
        overwrite(self._function, jump_to(executable(bytes.fromhex(code))))

    def end(self) -> None:
        """Stop watching."""
        overwrite(self._function, self._before)
