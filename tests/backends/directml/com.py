"""COM objects written in Python, with a real table of functions (vtable)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from dmlconf.backends.directml.api.vtable import ComObject, Interface, prototype


class FakeCom(ComObject):
    """A COM object whose methods are Python functions; calling any other method crashes."""

    def __init__(self, interface: Interface, **methods: Callable[..., Any]) -> None:
        """Lay out the table of functions, which are called without `this`."""
        table = (ctypes.c_void_p * interface.length)()
        self._alive: list[Any] = [table]
        for name, function in {"Release": lambda: 0, **methods}.items():
            slot, method = interface.slots[name]
            kind: Any = prototype(method.result, ctypes.c_void_p, *(method.arguments or ()))
            native = kind(lambda this, *arguments, function=function: function(*arguments))
            self._alive.append(native)
            table[slot] = ctypes.cast(native, ctypes.c_void_p).value
        instance = ctypes.c_void_p(ctypes.addressof(table))
        self._alive.append(instance)
        super().__init__(interface, ctypes.addressof(instance))
