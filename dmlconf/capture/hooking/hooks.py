"""Record what an application asks its DirectML devices to create and compile.

A hook calls the original function with the same arguments and returns its result; the hook's own
errors only go to the journal. DirectML itself also calls these functions, so only a thread's
outermost call is the application's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.directml.api import dml, hresult
from dmlconf.backends.directml.api.decoding import UnknownDescError, decoded_desc
from dmlconf.backends.directml.api.hresult import HResultError, failed
from dmlconf.backends.directml.api.library import load
from dmlconf.backends.directml.api.structs import DML_OPERATOR_DESC
from dmlconf.backends.directml.api.vtable import HRESULT, NEW_OBJECT, ComObject, prototype
from dmlconf.backends.directml.devices.adapters import Adapters, choose_adapter
from dmlconf.backends.directml.devices.device import Device
from dmlconf.capture.graph_decoding import decoded_graph
from dmlconf.capture.hooking.arrays import ArrayStore, StatisticsStore, Store
from dmlconf.capture.hooking.dispatches import Dispatches
from dmlconf.capture.hooking.guard import Guard
from dmlconf.capture.hooking.patches import Patches
from dmlconf.capture.hooking.slots import Compiled, graph_slots, operator_slots
from dmlconf.capture.hooking.systems.current import system
from dmlconf.capture.journal import JournalWriter
from dmlconf.capture.journal_lines import graph_line, operator_line
from dmlconf.capture.thread_lock import ThreadLock
from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import Operator

__all__ = ["Capture", "DataOptions"]

_POINTER: Final = ctypes.c_void_p
_UINT: Final = ctypes.c_uint32

_NUMBER_DIGITS: Final = 15
"""How many hexadecimal digits of its digest are the number of an operator or graph."""


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Which data of dispatches is kept.

    Attributes:
        folder: the folder for the data.
        dispatches: the most dispatches to keep of each operator and graph; 0 for weights alone.
        most_bytes: the most bytes of all data; statistics have no limit.
        statistics: whether the statistics of the data are kept instead of the data.
    """

    folder: Path
    dispatches: int
    most_bytes: int
    statistics: bool = False


class Capture:
    """The hooks of this process; `end` removes them."""

    def __init__(self, journal: JournalWriter, data: DataOptions | None = None) -> None:
        """Watch DirectML, whether it is loaded already or later.

        Raises:
            OSError: as for the system's `LoadNotification`.
        """
        self._journal = journal
        self._patches = Patches()
        self._guard = Guard(journal)
        self._lock = ThreadLock()
        self._operators: dict[int, tuple[Operator, Desc]] = {}
        self._described: set[str] = set()
        self._dispatches: Dispatches | None = None
        if data is not None:
            store: Store = (
                StatisticsStore() if data.statistics else ArrayStore(data.folder, data.most_bytes)
            )
            self._dispatches = Dispatches(
                self._patches, self._guard, journal, store, data.dispatches
            )
        self._notification = system.LoadNotification(self._loaded, self._patches.forget)
        for module in system.loaded_modules():
            self._loaded(module)
            self._watch_existing(module)

    def end(self) -> None:
        """Remove the hooks."""
        self._notification.end()
        self._patches.remove()

    def _loaded(self, module: int) -> None:
        """Watch the devices that a library creates; may run under the loader's lock."""
        with self._guard.safely():
            for name, numbers in (("DMLCreateDevice", 1), ("DMLCreateDevice1", 2)):
                kind = prototype(HRESULT, _POINTER, *[_UINT] * numbers, *NEW_OBJECT)
                with suppress(LookupError):  # DMLCreateDevice1 came with DirectML 1.1.
                    self._patches.replace_export(module, name, kind, self._creating_device(module))

    def _creating_device(self, module: int) -> Callable[[Callable[..., int]], Callable[..., int]]:
        def make(original: Callable[..., int]) -> Callable[..., int]:
            def create(*arguments: Any) -> int:
                result = original(*arguments)
                if self._patches.removed:  # The application keeps this function's address.
                    return result
                with self._guard.safely():
                    if not failed(result) and arguments[-1] and arguments[-1][0]:
                        self._journal.write(
                            {"event": "device", "library": system.library_file(module)}
                        )
                        self._watch(arguments[-1][0], arguments[0])
                return result

            return create

        return make

    def _watch_existing(self, module: int) -> None:
        """Watch the devices that a library has created already.

        dmlconf creates a device, in whose vtable the hook of DMLCreateDevice replaces methods. All
        devices of the library share this vtable.
        """
        with self._guard.safely():
            libraries = load(system.library_file(module))
            with Adapters(libraries) as adapters:
                chosen = choose_adapter(None, adapters.found)
                Device(libraries, adapters.native(chosen)).close()

    def _watch(self, address: int, d3d: int) -> None:
        """Watch a device and all others of its library, which share its vtable."""
        device = ComObject(dml.IDML_DEVICE, address)  # The application's reference: not released.
        hooks: dict[str, Callable[[Callable[..., int]], Callable[..., int]]] = {
            "CreateOperator": self._creating_operator,
            "CompileOperator": self._compiling_operator,
        }
        for name, make in hooks.items():
            self._patches.replace_method(address, dml.IDML_DEVICE, name, make)
        with suppress(HResultError), device.create("QueryInterface", dml.IDML_DEVICE1) as newer:
            self._patches.replace_method(
                newer.address, dml.IDML_DEVICE1, "CompileGraph", self._compiling_graph
            )
        if self._dispatches is not None:
            self._dispatches.watch(address, d3d)

    def _creating_operator(self, original: Callable[..., int]) -> Callable[..., int]:
        def create(this: int, desc: int, riid: Any, created: Any) -> int:
            if self._guard.inside:
                return original(this, desc, riid, created)
            with self._guard.entered():
                result = original(this, desc, riid, created)
            with self._guard.safely():
                self._note_operator(desc, result, created)
            return result

        return create

    def _note_operator(self, desc: int, result: int, created: Any) -> None:
        if failed(result):
            number = DML_OPERATOR_DESC.from_address(desc).Type if desc else 0
            self._journal.write(
                {"event": "refused", "type": number, "hresult": hresult.name(result)}
            )
            return
        if not created or not created[0]:
            return  # The application only asked whether the desc is valid.
        with self._lock:
            self._operators.pop(created[0], None)
        try:
            known = decoded_desc(desc)
        except UnknownDescError as error:
            self._journal.write({"event": "skipped", "what": "operator", "reason": str(error)})
            return
        with self._lock:
            self._operators[created[0]] = known
        self._journal.write({"event": "created", "operator": known[0].name})

    def _compiling_operator(self, original: Callable[..., int]) -> Callable[..., int]:
        def compile_operator(this: int, operator: int, flags: int, riid: Any, new: Any) -> int:
            if self._guard.inside:
                return original(this, operator, flags, riid, new)
            number, compiled = None, None
            with self._guard.safely():
                known = self._known(operator)
                if known is None:
                    reason = "an operator that was created before capturing began, or is skipped"
                    self._skip("operator", reason)
                else:
                    number = self._begin(operator_line(*known, flags))
                    compiled = operator_slots(number, flags, *known)
            with self._guard.entered():
                result = original(this, operator, flags, riid, new)
            with self._guard.safely():
                self._finish(number, result)
                self._note_compiled(compiled, result, new)
            return result

        return compile_operator

    def _compiling_graph(self, original: Callable[..., int]) -> Callable[..., int]:
        def compile_graph(this: int, desc: int, flags: int, riid: Any, new: Any) -> int:
            if self._guard.inside:
                return original(this, desc, flags, riid, new)
            number, compiled = None, None
            with self._guard.safely():
                try:
                    decoded = decoded_graph(desc, self._known)
                    number = self._begin(graph_line(decoded, flags))
                    compiled = graph_slots(number, flags, decoded)
                except UnknownDescError as error:
                    self._skip("graph", str(error))
            with self._guard.entered():
                result = original(this, desc, flags, riid, new)
            with self._guard.safely():
                self._finish(number, result)
                self._note_compiled(compiled, result, new)
            return result

        return compile_graph

    def _note_compiled(self, compiled: Compiled | None, result: int, new: Any) -> None:
        made = not failed(result) and new and new[0]
        if self._dispatches is not None and compiled is not None and made:
            self._dispatches.compiled(new[0], compiled)

    def _known(self, address: int) -> tuple[Operator, Desc] | None:
        with self._lock:
            return self._operators.get(address)

    def _skip(self, what: str, reason: str) -> None:
        self._journal.write({"event": "skipped", "what": what, "reason": reason})

    def _begin(self, line: tuple[str, Mapping[str, Any]]) -> int:
        """Write that an operator or graph is compiled, described if new; return its number."""
        key, content = line
        # A child that the program forks writes to the same journal, so a count would not do.
        number = int(key[:_NUMBER_DIGITS], 16)
        with self._lock:
            is_new = key not in self._described
            self._described.add(key)
        event = {"event": "compile", "number": number}
        self._journal.write({**event, **content} if is_new else event)
        return number

    def _finish(self, number: int | None, result: int) -> None:
        if number is not None:
            name = hresult.name(result) if failed(result) else "S_OK"
            self._journal.write({"event": "compiled", "number": number, "hresult": name})
