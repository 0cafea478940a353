"""COM interfaces as data, and calls through their tables of functions.

An interface lists its methods in the header's order; a method's slot is its place behind those of
the base interface. On 64-bit Windows a method that returns a structure gets a hidden pointer to it
right behind `this`, however small the structure is. On Linux the System V rules of C++ hold, which
are those that ctypes itself follows.

A call raises `HResultError` where it returns a failing HRESULT, and `NativeFaultError` where
Windows tells of an access violation or the like inside of it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from dmlconf.backends.directml.guid import GUID
from dmlconf.backends.directml.hresult import HResultError, failed

__all__ = [
    "HRESULT",
    "IUNKNOWN",
    "NEW_OBJECT",
    "ComObject",
    "Interface",
    "Method",
    "NativeFaultError",
    "check",
    "new_object",
    "prototype",
    "uncalled",
]

HRESULT: Final = ctypes.c_int32

NEW_OBJECT: Final = (ctypes.POINTER(GUID), ctypes.POINTER(ctypes.c_void_p))
"""The last two parameters of functions that make an object: REFIID and `void**`."""

_BY_POINTER: Final = sys.platform == "win32"


class NativeFaultError(Exception):
    """Native code did what a processor forbids; the process can no longer be trusted.

    Attributes:
        call: what was called.
        fault: what Windows says of the fault.
    """

    def __init__(self, call: str, fault: str) -> None:
        self.call = call
        self.fault = fault
        super().__init__(call, fault)

    def __str__(self) -> str:
        return f"{self.call}: {self.fault}"


@dataclass(frozen=True, slots=True)
class Method:
    """One method of an interface.

    Attributes:
        name: as the header spells it.
        arguments: ctypes types of the parameters behind `this`; None where dmlconf never calls it.
        result: ctypes type of what it returns; None for void, a structure type for a structure.
    """

    name: str
    arguments: tuple[Any, ...] | None = None
    result: Any = HRESULT


def uncalled(names: str) -> tuple[Method, ...]:
    """Return methods that only take their slots; their names stand in a list with blanks."""
    return tuple(map(Method, names.split()))


@dataclass(frozen=True)
class Interface:
    """A COM interface.

    Attributes:
        name: as the header spells it.
        iid: its identifier.
        base: the interface that it extends; None for IUnknown.
        methods: its own methods in the header's order.
    """

    name: str
    iid: str
    base: Interface | None
    methods: tuple[Method, ...] = ()

    @cached_property
    def length(self) -> int:
        """Number of slots, those of the base interface included."""
        return len(self.methods) + (self.base.length if self.base else 0)

    @cached_property
    def slots(self) -> Mapping[str, tuple[int, Method]]:
        """Slot and method by name, those of the base interface included."""
        inherited = dict(self.base.slots) if self.base else {}
        first = len(inherited)
        own = {method.name: (first + i, method) for i, method in enumerate(self.methods)}
        return {**inherited, **own}

    @cached_property
    def guid(self) -> GUID:
        """The identifier, as calls take it."""
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
    """Return the type of a native function, which makes a callable of its address."""
    if sys.platform == "win32":
        function_type: Callable[[int], Callable[..., Any]] = ctypes.WINFUNCTYPE(result, *arguments)
    else:
        function_type = ctypes.CFUNCTYPE(result, *arguments)
    return function_type


@cache
def _method_type(method: Method) -> Callable[[int], Callable[..., Any]]:
    this = ctypes.c_void_p
    if method.arguments is None:
        raise TypeError(f"{method.name} has no declared parameters")
    if _BY_POINTER and _is_structure(method.result):
        return prototype(None, this, ctypes.POINTER(method.result), *method.arguments)
    return prototype(method.result, this, *method.arguments)


def check(call: str, hresult: int) -> None:
    """Raise `HResultError` where the HRESULT says that the call failed."""
    if failed(hresult):
        raise HResultError(call, hresult)


class ComObject:
    """One reference to a COM object; leaving it as a context manager releases it, once."""

    def __init__(self, interface: Interface, address: int) -> None:
        """Take over a reference.

        Args:
            interface: the interface that the address is of.
            address: the object's address, not null.
        """
        self.interface = interface
        self._address: int | None = address
        self._functions: dict[str, tuple[Method, Callable[..., Any]]] = {}

    def __enter__(self) -> ComObject:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def address(self) -> int:
        """The object's address.

        Raises:
            ValueError: it was released.
        """
        if self._address is None:
            raise ValueError(f"the {self.interface.name} was released")
        return self._address

    @property
    def _as_parameter_(self) -> int:
        # ctypes asks for it where an object is passed for a pointer.
        return self.address

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method, and return what it returns; an HRESULT is checked instead.

        Raises:
            HResultError: it returned a failing HRESULT.
            NativeFaultError: it crashed, and Windows told.
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
            raise NativeFaultError(name, str(error)) from error
        if method.result is HRESULT:
            check(name, result)
            return None
        return result

    def create(self, name: str, interface: Interface, *arguments: Any) -> ComObject:
        """Call a method whose last parameters are REFIID and `void**`, and return the new object.

        Raises:
            HResultError: it returned a failing HRESULT.
            NativeFaultError: it crashed, and Windows told.
        """
        pointer = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(interface.guid), ctypes.byref(pointer))
        if not pointer.value:
            raise HResultError(name, 0x80004003)
        return ComObject(interface, pointer.value)

    def release(self) -> None:
        """Give the reference back; doing so again does nothing."""
        if self._address is not None:
            _, function = self._function("Release")
            address, self._address = self._address, None
            self._functions.clear()
            function(address)

    def _function(self, name: str) -> tuple[Method, Callable[..., Any]]:
        slot, method = self.interface.slots[name]
        table = ctypes.c_void_p.from_address(self.address).value or 0
        entry = ctypes.c_void_p.from_address(table + slot * ctypes.sizeof(ctypes.c_void_p))
        entry_point = method, _method_type(method)(entry.value or 0)
        self._functions[name] = entry_point
        return entry_point


def new_object(
    name: str, create: Callable[..., int], interface: Interface, *arguments: Any
) -> ComObject:
    """Call a function whose last parameters are NEW_OBJECT, and return the object.

    Args:
        name: the function's name.
        create: the function.
        interface: the interface of the object.
        arguments: those before the last two.

    Raises:
        HResultError: the function fails.
        NativeFaultError: Windows tells of a fault inside of it.
    """
    pointer = ctypes.c_void_p()
    try:
        hresult = create(*arguments, ctypes.byref(interface.guid), ctypes.byref(pointer))
    except OSError as error:
        raise NativeFaultError(name, str(error)) from error
    check(name, hresult)
    return ComObject(interface, pointer.value or 0)
