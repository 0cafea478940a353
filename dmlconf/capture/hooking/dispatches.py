"""Keep the data of dispatches: the inputs before a dispatch, the outputs after it.

Usually copies are recorded in the dispatch's command list, before and after the dispatch. With
DESCRIPTORS_VOLATILE, tensors may be bound later, until the list is submitted; if they are, dmlconf
submits lists with copies before and after the whole list.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any, Final

from dmlconf.backends.directml.api import d3d12, dml
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.api.hresult import failed
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.fence import Fence, WaitLimit
from dmlconf.capture.hooking.arrays import Store
from dmlconf.capture.hooking.copies import Copies, borrowed, copying_list, device_of
from dmlconf.capture.hooking.guard import Guard
from dmlconf.capture.hooking.patches import Patches
from dmlconf.capture.hooking.slots import Compiled, Range, ranges
from dmlconf.capture.journal import JournalWriter
from dmlconf.capture.thread_lock import ThreadLock
from dmlconf.tensors.datatypes import Array

__all__ = ["Dispatches"]

_POINTER: Final = ctypes.c_void_p
_WAIT_SECONDS: Final = 20.0
"""How long to wait for a queue, which may itself wait for a later call of the application."""

_Original = Callable[..., Any]


@dataclass(slots=True)
class _Table:
    """A binding table: the parts of buffers in each binding."""

    inputs: tuple[tuple[Range | None, ...], ...] = ()
    outputs: tuple[tuple[Range | None, ...], ...] = ()

    def binds(self, what: Compiled) -> bool:
        """Return whether each tensor that a dispatch reads or writes is bound."""
        inputs, outputs = (tuple(chain.from_iterable(s)) for s in (self.inputs, self.outputs))
        read = zip_longest(what.inputs, inputs[: len(what.inputs)])
        written = zip_longest(what.outputs, outputs[: len(what.outputs)])
        return all(
            slot is None or slot.owned or bound is not None for slot, bound in chain(read, written)
        )


@dataclass(slots=True)
class _Dispatch:
    """A recorded dispatch whose data is kept.

    Attributes:
        what: the operator or graph that is dispatched or initialised.
        owner: the address of the compiled operator or graph.
        initializes: whether an initialiser is dispatched.
        late: before submission, whether tensors may still be bound; afterwards, whether the list
            lacks copies of what is bound.
        recorded: what was bound when copies were recorded in the list; None until then.
    """

    what: Compiled
    table: _Table
    owner: int
    initializes: bool = False
    late: bool = False
    recorded: _Table | None = None
    before: Copies | None = None
    after: Copies | None = None

    def settle(self) -> None:
        """At submission, set `late`, and drop copies of tensors that are no longer bound."""
        self.late = self.late and self.recorded != self.table
        if self.late:
            self.before = self.after = None


@dataclass(slots=True)
class _List:
    """A command list since its last reset: its dispatches that are not yet submitted, its copies.

    Attributes:
        held: references to buffers that the application may release before the list has run.
    """

    dispatches: list[_Dispatch] = field(default_factory=list)
    copies: list[Copies] = field(default_factory=list)
    held: list[ComObject] = field(default_factory=list)
    submissions: int = 0

    def release(self) -> None:
        """Release the memory of the copies, when the list was reset or is gone.

        After a second submission, for which dmlconf does not wait, the copies keep their memory.
        """
        if self.submissions <= 1:
            for copies in self.copies:
                copies.release()
            for buffer in self.held:
                buffer.release()


class Dispatches:
    """The hooks on the methods that initialise, bind, record and submit dispatches."""

    def __init__(
        self,
        patches: Patches,
        guard: Guard,
        journal: JournalWriter,
        store: Store,
        most: int,
    ) -> None:
        """`most` limits the kept dispatches of each operator and graph; 0 keeps only weights."""
        self._patches = patches
        self._guard = guard
        self._journal = journal
        self._store = store
        self._most = most
        self._lock = ThreadLock()
        self._compiled: dict[int, Compiled] = {}
        self._initializers: dict[int, tuple[int, ...]] = {}
        self._tables: dict[int, _Table] = {}
        self._lists: dict[int, _List] = {}
        self._taken: Counter[int] = Counter()
        self._weights: dict[int, Mapping[str, Mapping[str, Any]]] = {}

    def watch(self, device: int, d3d: int) -> None:
        """Watch a DirectML device, and the queues of its Direct3D device."""
        methods: dict[str, Callable[[_Original], _Original]] = {
            "CreateOperatorInitializer": self._creating_initializer,
            "CreateCommandRecorder": self._creating(
                dml.IDML_COMMAND_RECORDER, RecordDispatch=self._recording
            ),
            "CreateBindingTable": self._creating_table,
        }
        for name, make in methods.items():
            self._patches.replace_method(device, dml.IDML_DEVICE, name, make)
        desc = d3d12.D3D12_COMMAND_QUEUE_DESC(Type=d3d12.D3D12_COMMAND_LIST_TYPE.COMPUTE)
        direct3d = borrowed(d3d12.ID3D12_DEVICE, d3d)
        with direct3d.create(
            "CreateCommandQueue", d3d12.ID3D12_COMMAND_QUEUE, ctypes.byref(desc)
        ) as queue:
            interface = d3d12.ID3D12_COMMAND_QUEUE
            self._patches.replace_method(
                queue.address, interface, "ExecuteCommandLists", self._executing
            )

    def compiled(self, address: int, what: Compiled) -> None:
        """Note that an operator or a graph was compiled to the object at an address."""
        with self._lock:
            self._compiled[address] = what
            # A released initialiser may have had the same address.
            self._initializers.pop(address, None)
            self._weights.pop(address, None)

    def _creating(
        self, interface: Any, **methods: Callable[[_Original], _Original]
    ) -> Callable[[_Original], _Original]:
        """Return a hook that replaces methods of each object that the original creates."""

        def make(original: _Original) -> _Original:
            def create(this: int, riid: Any, new: Any) -> int:
                result = int(original(this, riid, new))
                with self._guard.safely():
                    if not failed(result) and new and new[0]:
                        for name, hook in methods.items():
                            self._patches.replace_method(new[0], interface, name, hook)
                return result

            return create

        return make

    def _creating_initializer(self, original: _Original) -> _Original:
        def create(this: int, count: int, operators: int, riid: Any, new: Any) -> int:
            result = int(original(this, count, operators, riid, new))
            with self._guard.safely():
                if not failed(result) and new and new[0]:
                    self._initializes(new[0], count, operators)
                    interface = dml.IDML_OPERATOR_INITIALIZER
                    self._patches.replace_method(new[0], interface, "Reset", self._resetting)
            return result

        return create

    def _resetting(self, original: _Original) -> _Original:
        def reset(this: int, count: int, operators: int) -> int:
            result = int(original(this, count, operators))
            with self._guard.safely():
                if not failed(result):
                    self._initializes(this, count, operators)
            return result

        return reset

    def _initializes(self, initializer: int, count: int, operators: int) -> None:
        addresses = (_POINTER * count).from_address(operators) if count else ()
        with self._lock:
            self._compiled.pop(initializer, None)
            self._initializers[initializer] = tuple(each or 0 for each in addresses)

    def _creating_table(self, original: _Original) -> _Original:
        def create(this: int, desc: int, riid: Any, new: Any) -> int:
            result = int(original(this, desc, riid, new))
            with self._guard.safely():
                if not failed(result) and new and new[0]:
                    with self._lock:
                        self._tables[new[0]] = _Table()
                    for name, make in {
                        "BindInputs": self._binding("inputs"),
                        "BindOutputs": self._binding("outputs"),
                        "Reset": self._resetting_table,
                    }.items():
                        interface = dml.IDML_BINDING_TABLE
                        self._patches.replace_method(new[0], interface, name, make)
            return result

        return create

    def _binding(self, side: str) -> Callable[[_Original], _Original]:
        def make(original: _Original) -> _Original:
            def bind(this: int, count: int, bindings: int | None) -> None:
                original(this, count, bindings)
                with self._guard.safely():
                    with self._lock:
                        table = self._tables.setdefault(this, _Table())
                    setattr(table, side, ranges(count, bindings))

            return bind

        return make

    def _resetting_table(self, original: _Original) -> _Original:
        def reset(this: int, desc: int | None) -> int:
            result = int(original(this, desc))
            with self._guard.safely(), self._lock:
                self._tables[this] = _Table()
            return result

        return reset

    def _recording(self, original: _Original) -> _Original:
        def record(this: int, commands: int, dispatchable: int, table: int) -> None:
            if self._guard.inside:
                original(this, commands, dispatchable, table)
                return
            dispatches: list[_Dispatch] = []
            with self._guard.safely():
                dispatches = self._wanted(dispatchable, table)
                self._before(commands, dispatches)
            with self._guard.entered():
                original(this, commands, dispatchable, table)
            with self._guard.safely():
                for dispatch in dispatches:
                    if dispatch.after is not None:
                        dispatch.after.record(_list(commands), in_use=True)

        return record

    def _wanted(self, dispatchable: int, table: int) -> list[_Dispatch]:
        """Return the dispatches of one call of RecordDispatch whose data is kept.

        An initialiser has one for each of its operators with inputs OWNED_BY_DML. The dispatch of
        an operator or graph is kept if it is among the first `_most`.
        """
        with self._lock:
            bound = self._tables.setdefault(table, _Table())
            if dispatchable in self._initializers:
                return self._initializations(self._initializers[dispatchable], bound)
            what = self._compiled.get(dispatchable)
            if what is None or self._taken[what.number] >= self._most:
                return []
            self._taken[what.number] += 1
        late = bool(what.flags & DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE)
        return [_Dispatch(what, bound, dispatchable, late=late)]

    def _initializations(self, owners: Sequence[int], bound: _Table) -> list[_Dispatch]:
        """Return a dispatch for each of an initialiser's operators that has inputs OWNED_BY_DML.

        The initialiser's table has one binding for each of its operators, in order.
        """
        found = []
        for owner, inputs in zip(owners, bound.inputs, strict=False):
            what = self._compiled.get(owner)
            if what is not None and any(slot is not None and slot.owned for slot in what.inputs):
                found.append(_Dispatch(what, _Table((inputs,)), owner, initializes=True))
        return found

    def _before(self, commands: int, dispatches: Sequence[_Dispatch]) -> None:
        """Record copies of the inputs, and watch when the command list is reset or released."""
        if not dispatches:
            return
        commands_object = _list(commands)
        interface = d3d12.ID3D12_GRAPHICS_COMMAND_LIST
        self._patches.replace_method(commands, interface, "Reset", self._resetting_list)
        self._patches.replace_method(commands, interface, "Release", self._releasing_list)
        with device_of(commands_object) as device:
            for dispatch in dispatches:
                # Without memory for one operator of an initialiser, the data of others is kept.
                with self._guard.safely():
                    self._record_inputs(commands_object, dispatch, device)

    def _record_inputs(self, commands: ComObject, dispatch: _Dispatch, device: ComObject) -> None:
        """Record copies of a dispatch's inputs unless they are yet to be bound, and keep it.

        Raises:
            HResultError: there is not enough memory.
        """
        copies: list[Copies] = []
        held: list[ComObject] = []
        if not dispatch.late or dispatch.table.binds(dispatch.what):
            _prepare(dispatch, device)
            dispatch.recorded = replace(dispatch.table)
            copies = [each for each in (dispatch.before, dispatch.after) if each is not None]
            if dispatch.late:
                held += chain.from_iterable(each.hold() for each in copies)
        with self._lock:
            content = self._lists.setdefault(commands.address, _List())
            content.copies += copies
            content.held += held
        if dispatch.before is not None:
            dispatch.before.record(commands, in_use=True)
        with self._lock:
            content.dispatches.append(dispatch)

    def _resetting_list(self, original: _Original) -> _Original:
        def reset(this: int, allocator: int | None, state: int | None) -> int:
            result = int(original(this, allocator, state))
            with self._guard.safely():
                with self._lock:
                    content = self._lists.pop(this, None)
                if content is not None and not failed(result):
                    content.release()
            return result

        return reset

    def _releasing_list(self, original: _Original) -> _Original:
        def release(this: int) -> int:
            if self._guard.inside:
                return int(original(this))
            # Afterwards another list may have the same address.
            with self._lock:
                content = self._lists.pop(this, None)
            result = int(original(this))
            with self._guard.safely():
                if content is not None and not result:
                    content.release()
                elif content is not None:
                    with self._lock:
                        self._lists.setdefault(this, content)
            return result

        return release

    def _executing(self, original: _Original) -> _Original:
        def execute(this: int, count: int, lists: int) -> None:
            if self._guard.inside:
                original(this, count, lists)
                return
            addresses: tuple[int, ...] = ()
            pending: dict[int, list[_Dispatch]] = {}
            with self._guard.safely():
                addresses = tuple((_POINTER * count).from_address(lists)) if count else ()
                pending = self._pending(addresses)
            if not pending:
                original(this, count, lists)
                return
            _Submission(self._guard, original, this, addresses, pending, self._keep).run()

        return execute

    def _pending(self, lists: Sequence[int]) -> dict[int, list[_Dispatch]]:
        """Return the dispatches whose data is to be kept, by the index of their list."""
        pending = {}
        with self._lock:
            for index, commands in enumerate(lists):
                content = self._lists.get(commands)
                if content is None:
                    continue
                content.submissions += 1
                if content.dispatches:
                    pending[index], content.dispatches = content.dispatches, []
                    for dispatch in pending[index]:
                        dispatch.settle()
        return pending

    def _keep(self, dispatch: _Dispatch) -> None:
        before = {} if dispatch.before is None else self._kept(dispatch.before.arrays())
        after = {} if dispatch.after is None else self._kept(dispatch.after.arrays())
        if dispatch.initializes:
            if before is not None:
                with self._lock:
                    self._weights[dispatch.owner] = before
            if not self._most:
                self._write("weights", dispatch, {"inputs": before})
            return
        with self._lock:
            weights = self._weights.get(dispatch.owner, {})
        inputs = None if before is None else {**weights, **before}
        self._write(self._store.event, dispatch, {"inputs": inputs, "outputs": after})

    def _write(
        self, event: str, dispatch: _Dispatch, sides: Mapping[str, Mapping[str, Any] | None]
    ) -> None:
        if None in sides.values():
            what = "weights" if event == "weights" else "dispatches"
            reason = f"the data of {what} is larger than the limit"
            self._journal.write({"event": "skipped", "what": "data", "reason": reason})
            return
        self._journal.write({"event": event, "number": dispatch.what.number, **sides})

    def _kept(self, arrays: Mapping[str, Array]) -> dict[str, Mapping[str, Any]] | None:
        kept = {}
        for name, array in arrays.items():
            entry = self._store.put(array)
            if entry is None:
                return None
            kept[name] = entry
        return kept


@dataclass(slots=True)
class _Submission:
    """One call of ExecuteCommandLists that has dispatches whose data is kept."""

    guard: Guard
    original: _Original
    queue: int
    lists: Sequence[int]
    pending: Mapping[int, list[_Dispatch]]
    keep: Callable[[_Dispatch], None]

    def run(self) -> None:
        """Submit every list once, in order, even if dmlconf's own work fails."""
        begun = 0
        late = {p for p, each in self.pending.items() if any(d.late for d in each)}
        complete = set()
        owner = ExitStack()
        for index in sorted(late):
            self._submit(self.lists[begun:index])
            before = False
            with self.guard.safely():
                self._around(index, owner, after=False)
                before = True
            self._submit(self.lists[index : index + 1])
            begun = index + 1
            with self.guard.safely():
                if before:
                    self._around(index, owner, after=True)
                    complete.add(index)
        self._submit(self.lists[begun:])
        with self.guard.safely():
            self._wait()
            # If the wait fails, the queue still runs, and what it uses must not be released.
            with owner:
                for index, dispatches in self.pending.items():
                    for dispatch in dispatches:
                        if not dispatch.late or index in complete:
                            self.keep(dispatch)

    def _submit(self, lists: Sequence[int]) -> None:
        if lists:
            array = (_POINTER * len(lists))(*lists)
            with self.guard.entered():
                self.original(self.queue, len(lists), ctypes.addressof(array))

    def _around(self, index: int, owner: ExitStack, *, after: bool) -> None:
        """Submit copies for a list's late dispatches: inputs before it runs, outputs after."""
        commands = _list(self.lists[index])
        device = owner.enter_context(device_of(commands))
        for dispatch in self.pending[index]:
            if not dispatch.late:
                continue
            if not after:
                _prepare(dispatch, device)
                for copies in filter(None, (dispatch.before, dispatch.after)):
                    owner.callback(copies.release)
            wanted = dispatch.after if after else dispatch.before
            if wanted is not None:
                own = owner.enter_context(copying_list(device, commands, wanted))
                self._submit((own.address,))

    def _wait(self) -> None:
        queue = borrowed(d3d12.ID3D12_COMMAND_QUEUE, self.queue)
        with device_of(queue) as device:
            fence = Fence(device, queue, WaitLimit(_WAIT_SECONDS))
            fence.signal()
            fence.wait()
            fence.release()


def _prepare(dispatch: _Dispatch, device: ComObject) -> None:
    """Allocate memory for copies of the tensors that a dispatch's table binds now.

    Raises:
        HResultError: there is not enough memory.
    """
    bound_inputs = chain.from_iterable(dispatch.table.inputs)
    inputs = zip(dispatch.what.inputs, bound_inputs, strict=False)
    parts = [
        (slot, bound)
        for slot, bound in inputs
        if slot is not None and bound is not None and slot.owned is dispatch.initializes
    ]
    with ExitStack() as owner:
        before, after = Copies.of(device, parts), None
        if before is not None:
            owner.callback(before.release)
        if not dispatch.initializes:
            bound_outputs = chain.from_iterable(dispatch.table.outputs)
            outputs = zip(dispatch.what.outputs, bound_outputs, strict=False)
            written = [(slot, bound) for slot, bound in outputs if slot and bound]
            after = Copies.of(device, written)
        owner.pop_all()
    dispatch.before, dispatch.after = before, after


def _list(address: int) -> ComObject:
    return borrowed(d3d12.ID3D12_GRAPHICS_COMMAND_LIST, address)
