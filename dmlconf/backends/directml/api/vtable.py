"""COM interfaces as data, and calls through their vtables: the tables of an object's functions.

On 64-bit Windows, a method that returns a structure gets a hidden pointer to it right after `this`,
however small the structure is. On Linux, ctypes itself passes such a pointer where one is needed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from dmlconf.backends.directml.api.guid import GUID
from dmlconf.backends.directml.api.hresult import HResultError, failed

__all__ = [
    "ACCESS_VIOLATION",
    "HRESULT",
    "IUNKNOWN",
    "NEW_OBJECT",
    "ComObject",
    "Interface",
    "Method",
    "NativeCrashError",
    "check",
    "method_type",
    "new_object",
    "prototype",
    "uncalled",
]

HRESULT: Final = ctypes.c_int32

ACCESS_VIOLATION: Final = -0x3FFF_FFFB
"""The exit code of a process that Windows ends for an access violation: 0xC0000005, signed."""

NEW_OBJECT: Final = (ctypes.POINTER(GUID), ctypes.POINTER(ctypes.c_void_p))
"""REFIID and `void**`, the last two parameters of a call that returns a new object."""

_BY_POINTER: Final = sys.platform == "win32"
"""Whether a method that returns a structure gets a hidden pointer to it."""


class NativeCrashError(Exception):
    """Native code raised an exception of Windows; the process can no longer be trusted."""

    def __init__(self, call: str, description: str) -> None:
        self.call = call
        self.description = description
        super().__init__(call, description)

    def __str__(self) -> str:
        return f"{self.call}: {self.description}"


@dataclass(frozen=True, slots=True)
class Method:
    """One method of an interface.

    Attributes:
        arguments: ctypes types of the parameters after `this`; None if the method is not called.
        result: ctypes type of the result; None for void.
    """

    name: str
    arguments: tuple[Any, ...] | None = None
    result: Any = HRESULT


def uncalled(names: str) -> tuple[Method, ...]:
    """Return methods that only occupy slots of the vtable, from names separated by spaces."""
    return tuple(map(Method, names.split()))


@dataclass(frozen=True)
class Interface:
    """A COM interface.

    Attributes:
        base: the interface that it extends; None for IUnknown.
        methods: its own methods in the header's order.
    """

    name: str
    iid: str
    base: Interface | None
    methods: tuple[Method, ...] = ()

    @cached_property
    def length(self) -> int:
        """Number of slots, including those of the base interface."""
        return len(self.methods) + (self.base.length if self.base else 0)

    @cached_property
    def slots(self) -> Mapping[str, tuple[int, Method]]:
        """Slot and method by name, including those of the base interface."""
        inherited = dict(self.base.slots) if self.base else {}
        first = len(inherited)
        own = {method.name: (first + i, method) for i, method in enumerate(self.methods)}
        return {**inherited, **own}

    @cached_property
    def guid(self) -> GUID:
        """The `iid` as a GUID."""
        return GUID.parse(self.iid)


_ULONG: Final = ctypes.c_uint32

IUNKNOWN: Final = Interface(
    "IUnknown",
    "00000000-0000-0000-c000-000000000046",
    None,
    (
        Method("QueryInterface", NEW_OBJECT),
        Method("AddRef", (), _ULONG),
        Method("Release", (), _ULONG),
    ),
)


def _is_structure(result: Any) -> bool:
    return isinstance(result, type) and issubclass(result, ctypes.Structure)


@cache
def prototype(result: Any, *arguments: Any) -> Callable[[int], Callable[..., Any]]:
    """Return a type of native functions; called with an address, it gives a Python function."""
    if sys.platform == "win32":
        function_type: Callable[[int], Callable[..., Any]] = ctypes.WINFUNCTYPE(result, *arguments)
    else:
        function_type = ctypes.CFUNCTYPE(result, *arguments)
    return function_type


@cache
def method_type(method: Method) -> Callable[[int], Callable[..., Any]]:
    """Return the type of a method's native function, whose first parameter is `this`.

    Raises:
        TypeError: the method's parameters are not declared.
    """
    this = ctypes.c_void_p
    if method.arguments is None:
        raise TypeError(f"{method.name} has no declared parameters")
    if _BY_POINTER and _is_structure(method.result):
        return prototype(None, this, ctypes.POINTER(method.result), *method.arguments)
    return prototype(method.result, this, *method.arguments)


def check(call: str, hresult: int) -> None:
    """Raise `HResultError` if the HRESULT says that the call failed."""
    if failed(hresult):
        raise HResultError(call, hresult)


class ComObject:
    """One reference to a COM object; as a context manager, it releases the reference at the end."""

    def __init__(self, interface: Interface, address: int) -> None:
        """Take over a reference to the object at an address, which is not null."""
        self.interface = interface
        self._address: int | None = address
        self._functions: dict[str, tuple[Method, Callable[..., Any]]] = {}

    def __enter__(self) -> ComObject:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def address(self) -> int:
        """The object's address; `ValueError` if the reference was released."""
        if self._address is None:
            raise ValueError(f"the {self.interface.name} was released")
        return self._address

    @property
    def _as_parameter_(self) -> int:
        # ctypes uses this if an object is passed as a pointer.
        return self.address

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method and return its result; None if that is an HRESULT or void.

        Raises:
            HResultError: the HRESULT says that the call failed.
            KeyError: the interface has no such method.
            NativeCrashError: the call crashed.
            TypeError: the method's parameters are not declared.
            ValueError: the reference was released.
        """
        this = self.address
        method, function = self._functions.get(name) or self._function(name)
        try:
            if _BY_POINTER and _is_structure(method.result):
                result = method.result()
                function(this, ctypes.byref(result), *arguments)
                return result
            result = function(this, *arguments)
        except OSError as error:
            raise NativeCrashError(name, str(error)) from error
        if method.result is HRESULT:
            check(name, result)
            return None
        return result

    def create(self, name: str, interface: Interface, *arguments: Any) -> ComObject:
        """Call a method whose last parameters are REFIID and `void**`, and return the new object.

        Raises:
            HResultError, KeyError, NativeCrashError, TypeError, ValueError: as in `call`;
                HResultError also if no object came.
        """
        pointer = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(interface.guid), ctypes.byref(pointer))
        return _object_at(name, interface, pointer)

    def release(self) -> None:
        """Release the reference; a second call has no effect.

        Raises:
            NativeCrashError: the call crashed.
        """
        if self._address is not None:
            _, function = self._function("Release")
            address, self._address = self._address, None
            self._functions.clear()
            try:
                function(address)
            except OSError as error:
                raise NativeCrashError("Release", str(error)) from error

    def _function(self, name: str) -> tuple[Method, Callable[..., Any]]:
        slot, method = self.interface.slots[name]
        table = ctypes.c_void_p.from_address(self.address).value or 0
        entry = ctypes.c_void_p.from_address(table + slot * ctypes.sizeof(ctypes.c_void_p))
        entry_point = method, method_type(method)(entry.value or 0)
        self._functions[name] = entry_point
        return entry_point


def new_object(
    name: str, create: Callable[..., int], interface: Interface, *arguments: Any
) -> ComObject:
    """Call a function whose last parameters are REFIID and `void**`, and return the new object.

    Raises:
        HResultError: the HRESULT says that the call failed, or no object came.
        NativeCrashError: the call crashed.
    """
    pointer = ctypes.c_void_p()
    try:
        hresult = create(*arguments, ctypes.byref(interface.guid), ctypes.byref(pointer))
    except OSError as error:
        raise NativeCrashError(name, str(error)) from error
    check(name, hresult)
    return _object_at(name, interface, pointer)


def _object_at(name: str, interface: Interface, pointer: ctypes.c_void_p) -> ComObject:
    """Return the object that a call has created; raise `HResultError` if there is none."""
    if not pointer.value:
        raise HResultError(name, 0x80004003)
    return ComObject(interface, pointer.value)
