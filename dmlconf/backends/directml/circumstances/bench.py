"""The memory, the binding tables and the queues with which cases run under circumstances.

A circumstance makes sites of a case, initialises them, and runs steps on them; `work` explains
site, step and arena. Before each step, the arena gets the inputs that DirectML has not taken over,
and a fill value in all other bytes: 0xCD and 0xFF in turn. Scratch and persistent memory stay as
the previous step left them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.d3d12 import D3D12_HEAP_TYPE, D3D12_RESOURCE_STATES
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.circumstances.lane import Lane
from dmlconf.backends.directml.circumstances.work import Load, Site, Step, Work, memory_of
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.devices.memory import Buffer, Buffers, DescriptorHeap, Region
from dmlconf.backends.directml.dispatch.bindings import Resources, bind_initializer
from dmlconf.backends.directml.dispatch.case_flags import flags_of
from dmlconf.backends.directml.dispatch.operators import CompiledOperator, OperatorCache
from dmlconf.backends.directml.dispatch.placement import POISONS, Placement, placement_of
from dmlconf.cases.model import Case
from dmlconf.cases.plans import plan
from dmlconf.cases.variation import varied
from dmlconf.tensors.datatypes import Array

__all__ = ["MOST_BYTES", "Bench", "TooLargeError"]

MOST_BYTES: Final = 1 << 27
"""The most bytes that the steps of a command list together upload and read back."""

_MOST_SPAN: Final = MOST_BYTES >> 4
"""The most bytes of a case's arena: `offset` reads an arena back after up to 16 dispatches."""

_MOST_DESCRIPTORS: Final = 1 << 14
_LEAST_BYTES: Final = 1 << 16
_POISON_BYTES: Final = 1 << 20
"""Memory is filled by copies of at most this many bytes from a buffer of one fill value."""

_States = D3D12_RESOURCE_STATES
_Heap = D3D12_HEAP_TYPE


class TooLargeError(Exception):
    """A case needs more memory or descriptors than a circumstance may take."""


class Bench:
    """Runs one case at a time in a `with` block, whose end releases the binding tables."""

    def __init__(
        self,
        device: Device,
        operators: Callable[[dml.DML_EXECUTION_FLAGS], OperatorCache],
        *,
        graph: bool,
    ) -> None:
        """Start with no memory.

        Args:
            operators: takes flags, and returns a cache that compiles with these and with the flags
                of the backend's options.
            graph: whether each operator is compiled as a graph of one node.
        """
        self.device = device
        self._operators = operators
        self._graph = graph
        self._buffers = Buffers(device.d3d, _LEAST_BYTES)
        self._heap: DescriptorHeap | None = None
        self._lanes: tuple[Lane, Lane] | None = None
        self._owner = ExitStack()
        self._descriptors = 0
        self._sites = 0
        self._steps = 0
        self._inputs: dict[tuple[str, int], dict[str, Array]] = {}

    def close(self) -> None:
        """Release the memory, the descriptor heap and the additional queues."""
        self._owner.close()
        for lane in self._lanes or ():
            lane.close()
        self._buffers.release()
        if self._heap is not None:
            self._heap.release()
            self._heap = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._owner.close()
        self._owner = ExitStack()
        self._descriptors = self._sites = self._steps = 0
        self._inputs.clear()

    @property
    def heap(self) -> DescriptorHeap:
        """The descriptor heap of all binding tables."""
        self._heap = self._heap or DescriptorHeap(self.device.d3d, _MOST_DESCRIPTORS)
        return self._heap

    def compiles_as_graph(self, case: Case) -> bool:
        """Return whether CompileGraph, rather than CompileOperator, compiles a case."""
        return self._graph or case.is_compiled_as_graph

    def site(
        self,
        case: Case,
        *,
        flags: dml.DML_EXECUTION_FLAGS = dml.DML_EXECUTION_FLAGS.NONE,
        shift: int = 0,
        shares_with: Site | None = None,
    ) -> Site:
        """Compile a case, and give it memory and a binding table.

        Args:
            flags: flags for compiling, in addition to those of the backend's options.
            shift: bytes by which all tensors are moved from a multiple of 256.
            shares_with: a site of the same operator, whose memory the new site uses.

        Raises:
            HResultError: DirectML refuses the case, or there is not enough memory.
            NativeCrashError: DirectML crashed.
            TooLargeError: the case is too large for circumstances.
        """
        compilation = plan(case, as_graph=self._graph)
        compiled = self._operators(flags).get(compilation, flags_of(case.tags))
        placement = placement_of(compilation)
        if placement.span > _MOST_SPAN:
            raise TooLargeError(f"its tensors take {placement.span >> 20:,} MiB")
        if shares_with is None:
            resources = self._memory(compiled, placement, shift)
        else:
            arena = replace(shares_with.resources.arena, offset=shift)
            resources = replace(shares_with.resources, arena=arena)
        desc = self._table_desc(compiled.operator, compiled.descriptors[1])
        site = Site(case, compiled, placement, resources, self.table(desc), desc)
        site.bind()
        return site

    def _memory(self, compiled: CompiledOperator, placement: Placement, shift: int) -> Resources:
        number = self._sites
        self._sites += 1

        def region(name: str, size: int) -> Region | None:
            if not size:
                return None
            return Region(self._buffers.get(f"{name} {number}", size, _Heap.DEFAULT), 0, size)

        arena = self._buffers.get(f"arena {number}", placement.span + 256, _Heap.DEFAULT)
        return Resources(
            Region(arena, shift, placement.span),
            region("temporary", compiled.temporary_size),
            region("persistent", compiled.persistent_size),
        )

    def table(self, desc: dml.DML_BINDING_TABLE_DESC) -> ComObject:
        """Return a new binding table, which the end of the `with` block or `close` releases."""
        create = self.device.dml.create
        table = create("CreateBindingTable", dml.IDML_BINDING_TABLE, ctypes.byref(desc))
        return self._owner.enter_context(table)

    def _table_desc(self, dispatchable: ComObject, count: int) -> dml.DML_BINDING_TABLE_DESC:
        first = self._descriptors
        self._descriptors += count
        if self._descriptors > _MOST_DESCRIPTORS:
            raise TooLargeError(f"its tables take more than {_MOST_DESCRIPTORS:,} descriptors")
        return self.heap.table(dispatchable, first, count)

    def initialize(self, site: Site, variation: int = 0, *, from_upload: bool = False) -> None:
        """Initialise a site, and wait until it is done.

        Args:
            variation: the variation of the inputs with OWNED_BY_DML, as in `Dispatch`.
            from_upload: whether DirectML reads these inputs from an upload heap instead of the
                arena; the upload heap is overwritten afterwards.

        Raises:
            HResultError: a call failed.
            NativeCrashError: DirectML crashed.
            TooLargeError: the tables of the case take too many descriptors.
        """
        compiled, placement, device = site.compiled, site.placement, self.device
        table = self.table(self._table_desc(compiled.initializer, compiled.descriptors[0]))
        device.begin(self.heap)
        resources, memory = site.resources, memory_of([site])
        upload = None
        if placement.any_owned():
            upload = self._buffers.get("initial", placement.span, _Heap.UPLOAD)
            image = placement.initial(self._data(site.case, variation))
            ctypes.memmove(upload.memory, image.ctypes.data, len(image))
            if from_upload:
                resources = replace(resources, arena=Region(upload, 0, placement.span))
            else:
                arena = site.resources.arena
                device.change([arena.buffer], _States.COMMON, _States.COPY_DEST)
                device.copy(arena.buffer, arena.offset, upload, 0, arena.size)
                device.change([arena.buffer], _States.COPY_DEST, _States.COMMON)
        self._change(memory, _States.COMMON, _States.COPY_DEST)
        for region in (site.resources.temporary, site.resources.persistent):
            if region is not None:
                self._fill(region)
        self._change(memory, _States.COPY_DEST, _States.UNORDERED_ACCESS)
        bind_initializer(table, compiled.initializer_needs, compiled.needs, placement, resources)
        device.dispatch(compiled.initializer, table)
        self._change(memory, _States.UNORDERED_ACCESS, _States.COMMON)
        device.submit()
        if upload is not None:
            ctypes.memset(upload.memory, POISONS[1], placement.span)

    def run(
        self,
        steps: Iterable[Step],
        *,
        late: Callable[[], None] = lambda: None,
        read: Callable[[int], bool] = lambda number: True,
    ) -> list[Dispatch]:
        """Run steps in one submission, and return the results of the steps that are read back.

        Args:
            late: called after recording, before the submission.
            read: given a step's index, returns whether the arena is read back after the step.

        Raises:
            HResultError: a call failed.
            NativeCrashError: DirectML crashed.
            TooLargeError: the steps take too much memory.
        """
        work = self.prepared(steps, read=read)
        self.device.begin(self.heap)
        self.record(work, self.device)
        late()
        self.device.submit()
        return work.dispatches()

    def prepared(
        self,
        steps: Iterable[Step],
        name: str = "",
        *,
        read: Callable[[int], bool] = lambda number: True,
    ) -> Work:
        """Return steps with a filled upload buffer and a readback buffer.

        Args:
            name: the name of the buffers; command lists that run at once need different names.
            read: as for `run`.

        Raises:
            HResultError: there is not enough memory.
            TooLargeError: the steps take too much memory.
        """
        steps = list(steps)
        images: dict[tuple[int, int, int], tuple[int, Array]] = {}
        loads: list[Load] = []
        size = read_size = 0
        for number, step in enumerate(steps):
            fill = (number + self._steps) % len(POISONS)
            key = id(step.site.placement), step.variation, fill
            if key not in images:
                images[key] = size, self._image(step, POISONS[fill])
                size += len(images[key][1])
            start, image = images[key]
            loads.append(Load(step, start, image, read_size if read(number) else None))
            read_size += len(image) if read(number) else 0
        self._steps += len(steps)
        if size + read_size > MOST_BYTES:
            raise TooLargeError(f"its dispatches take {size + read_size >> 20:,} MiB")
        upload = self._buffers.get(f"upload {name}", size, _Heap.UPLOAD)
        for start, image in images.values():
            ctypes.memmove(upload.memory + start, image.ctypes.data, len(image))
        back = self._buffers.get(f"readback {name}", max(read_size, 1), _Heap.READBACK)
        return Work(tuple(loads), upload, back)

    def record(self, work: Work, commands: Device) -> None:
        """Record steps on the command list of `commands`."""
        memory = memory_of(load.step.site for load in work.loads)
        self._change(memory, _States.COMMON, _States.UNORDERED_ACCESS, commands)
        for load in work.loads:
            self._load(load, work, commands)
            site = load.step.site
            commands.dispatch(site.compiled.operator, site.table)
            self._read(load, work, commands)
        self._change(memory, _States.UNORDERED_ACCESS, _States.COMMON, commands)

    def run_side_by_side(self, steps: Sequence[Step]) -> list[Dispatch]:
        """Run steps on separate sites, with no barrier between their dispatches."""
        work, device = self.prepared(steps), self.device
        device.begin(self.heap)
        memory = memory_of(step.site for step in steps)
        self._change(memory, _States.COMMON, _States.UNORDERED_ACCESS)
        for load in work.loads:
            self._load(load, work, device)
        for step in steps:
            device.recorder.call(
                "RecordDispatch", device.commands, step.site.compiled.operator, step.site.table
            )
        for load in work.loads:
            self._read(load, work, device)
        self._change(memory, _States.UNORDERED_ACCESS, _States.COMMON)
        device.submit()
        return work.dispatches()

    def run_apart(self, step: Step, between: Callable[[], None]) -> list[Dispatch]:
        """Write the arena of a step, call `between`, and only then dispatch the step."""
        work, device = self.prepared([step]), self.device
        [load], arena = work.loads, step.site.resources.arena
        device.begin(self.heap)
        self._load(load, work, device)
        device.change([arena.buffer], _States.UNORDERED_ACCESS, _States.COMMON)
        device.submit()
        between()
        device.begin(self.heap)
        every = [*memory_of([step.site]), arena.buffer]
        device.change(every, _States.COMMON, _States.UNORDERED_ACCESS)
        device.dispatch(step.site.compiled.operator, step.site.table)
        self._change(every[:-1], _States.UNORDERED_ACCESS, _States.COMMON)
        self._read(load, work, device)
        device.submit()
        return work.dispatches()

    def _load(self, load: Load, work: Work, commands: Device) -> None:
        arena = load.step.site.resources.arena
        commands.change([arena.buffer], _States.COMMON, _States.COPY_DEST)
        commands.copy(arena.buffer, arena.offset, work.upload, load.start, arena.size)
        commands.change([arena.buffer], _States.COPY_DEST, _States.UNORDERED_ACCESS)

    def _read(self, load: Load, work: Work, commands: Device) -> None:
        arena = load.step.site.resources.arena
        commands.change([arena.buffer], _States.UNORDERED_ACCESS, _States.COPY_SOURCE)
        if load.back is not None:
            commands.copy(work.back, load.back, arena.buffer, arena.offset, arena.size)
        commands.change([arena.buffer], _States.COPY_SOURCE, _States.COMMON)

    def lanes(self) -> tuple[Lane, Lane]:
        """Return two additional queues, the same ones at each call."""
        self._lanes = self._lanes or (Lane(self.device), Lane(self.device))
        return self._lanes

    def variations(self, site: Site, numbers: Iterable[int]) -> list[Step]:
        """Return a step for each of these variations, as in `Dispatch`.

        Numbers above the case's highest become the highest. If DirectML has taken over inputs, all
        become 0.
        """
        last = 0 if site.placement.any_owned() else site.case.most_variations - 1
        return [Step(site, min(number, last)) for number in numbers]

    def _data(self, case: Case, variation: int) -> dict[str, Array]:
        key = case.identifier, variation
        if key not in self._inputs:
            self._inputs[key] = varied(case, variation).inputs()
        return self._inputs[key]

    def _image(self, step: Step, poison: int) -> Array:
        return step.site.placement.image(self._data(step.site.case, step.variation), poison)

    def _change(
        self,
        buffers: Sequence[Buffer],
        before: D3D12_RESOURCE_STATES,
        after: D3D12_RESOURCE_STATES,
        commands: Device | None = None,
    ) -> None:
        if buffers:
            (commands or self.device).change(buffers, before, after)

    def _fill(self, region: Region) -> None:
        source = self._buffers.get("poison", _POISON_BYTES, _Heap.UPLOAD)
        ctypes.memset(source.memory, POISONS[0], _POISON_BYTES)
        for start in range(0, region.size, _POISON_BYTES):
            count = min(_POISON_BYTES, region.size - start)
            self.device.copy(region.buffer, region.offset + start, source, 0, count)
