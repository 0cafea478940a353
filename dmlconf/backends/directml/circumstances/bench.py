"""Where a case runs under a circumstance: memory, binding tables and lists of commands.

A circumstance puts the case on one or more sites, initialises them, and runs steps on them. Before
each step the site's arena is filled as before a plain dispatch, with one poison or the other in
turn; scratch and persistent memory stay as the step before left them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml import dml
from dmlconf.backends.directml.bindings import Resources, bind_initializer, bind_operator
from dmlconf.backends.directml.d3d12 import D3D12_HEAP_TYPE, D3D12_RESOURCE_STATES
from dmlconf.backends.directml.device import Device
from dmlconf.backends.directml.inspection import inspect
from dmlconf.backends.directml.memory import Buffer, Buffers, DescriptorHeap, Region
from dmlconf.backends.directml.operators import CompiledOperator, OperatorCache
from dmlconf.backends.directml.placement import POISONS, Placement, place
from dmlconf.backends.directml.plans import plan
from dmlconf.backends.directml.staging import mapped
from dmlconf.backends.directml.vtable import ComObject
from dmlconf.backends.protocol import FaultKind
from dmlconf.cases.model import Case
from dmlconf.cases.variation import varied
from dmlconf.tensors.datatypes import Array

__all__ = ["MOST_BYTES", "Bench", "Site", "Step", "TooLargeError"]

MOST_BYTES: Final = 1 << 27
"""Bytes that the images of all steps of a submission may take."""

_MOST_DESCRIPTORS: Final = 1 << 14
_FIRST_BYTES: Final = 1 << 16
_POISON_BYTES: Final = 1 << 20
_INTRUSIONS: Final = frozenset({FaultKind.GUARD_BAND, FaultKind.INPUT})

_States = D3D12_RESOURCE_STATES
_Heap = D3D12_HEAP_TYPE


class TooLargeError(Exception):
    """A case needs more memory or descriptors than a circumstance may take; the message says so."""


@dataclass(frozen=True, slots=True)
class Site:
    """A compiled case with memory and a binding table.

    Attributes:
        case: the case.
        compiled: its operator or graph.
        placement: where the tensors lie in the arena.
        resources: the memory.
        table: the operator's binding table.
        desc: what the table was made from.
    """

    case: Case
    compiled: CompiledOperator
    placement: Placement
    resources: Resources
    table: ComObject
    desc: dml.DML_BINDING_TABLE_DESC

    def bind(self) -> None:
        """Bind the memory to the table."""
        bind_operator(self.table, self.compiled.needs, self.placement, self.resources)

    def moved(self, resources: Resources) -> Site:
        """Return the site with the same table and other memory; `bind` makes it so."""
        return replace(self, resources=resources)


@dataclass(frozen=True, slots=True)
class Step:
    """One dispatch.

    Attributes:
        site: where.
        variation: which inputs, as `varied` numbers them.
    """

    site: Site
    variation: int = 0


class Bench:
    """Runs one case at a time; leaving it as a context manager frees its tables."""

    def __init__(
        self, device: Device, operators: Callable[[dml.DML_EXECUTION_FLAGS], OperatorCache],
        *, graph: bool,
    ) -> None:  # fmt: skip
        """Begin with no memory.

        Args:
            device: where to run.
            operators: compiles operators with flags beside the run's own.
            graph: whether each operator is compiled as a graph of one node.
        """
        self.device = device
        self._operators = operators
        self._graph = graph
        self._buffers = Buffers(device.d3d, _FIRST_BYTES)
        self._heap: DescriptorHeap | None = None
        self._owner = ExitStack()
        self._descriptors = 0
        self._sites = 0
        self._steps = 0
        self._inputs: dict[tuple[str, int], dict[str, Array]] = {}

    def close(self) -> None:
        """Give back all memory."""
        self._owner.close()
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
        """The descriptors of all tables."""
        self._heap = self._heap or DescriptorHeap(self.device.d3d, _MOST_DESCRIPTORS)
        return self._heap

    def site(
        self,
        case: Case,
        *,
        flags: dml.DML_EXECUTION_FLAGS = dml.DML_EXECUTION_FLAGS.NONE,
        shift: int = 0,
        beside: Site | None = None,
    ) -> Site:
        """Compile a case, and give it memory and a table of its own.

        Args:
            case: the case.
            flags: how to compile it, beside the run's own flags.
            shift: bytes by which all tensors lie further on than at a multiple of 256.
            beside: a site of the same operator, whose memory this one shares but for the shift.

        Raises:
            HResultError: DirectML refuses the case, or there is not enough memory.
            TooLargeError: the case is too large for circumstances.
        """
        compilation = plan(case, as_graph=self._graph)
        compiled = self._operators(flags).get(compilation)
        placement = place(compilation)
        if placement.span > MOST_BYTES >> 4:
            raise TooLargeError(f"its tensors take {placement.span >> 20:,} MiB")
        if beside is None:
            resources = self._memory(compiled, placement, shift)
        else:
            arena = replace(beside.resources.arena, offset=shift)
            resources = replace(beside.resources, arena=arena)
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
        """Return a new binding table, which lives as long as the case is on the bench."""
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
            site: the site.
            variation: which inputs DirectML takes over, where it does.
            from_upload: whether it reads them from an upload heap, which is overwritten then.
        """
        compiled, placement, device = site.compiled, site.placement, self.device
        table = self.table(self._table_desc(compiled.initializer, compiled.descriptors[0]))
        device.begin(self.heap)
        resources, memory = site.resources, _memory_of([site])
        upload = None
        if placement.any_owned():
            upload = self._buffers.get("upload", placement.span, _Heap.UPLOAD)
            image = placement.initial(self._data(site.case, variation))
            ctypes.memmove(upload.memory, image.ctypes.data, len(image))
            if from_upload:
                resources = replace(resources, arena=Region(upload, 0, placement.span))
            else:
                self._copy_in(site, upload, 0)
        self._change(memory, _States.COMMON, _States.COPY_DEST)
        for region in (site.resources.temporary, site.resources.persistent):
            if region is not None:
                self._poison(region)
        self._change(memory, _States.COPY_DEST, _States.UNORDERED_ACCESS)
        bind_initializer(table, compiled.initializer_needs, compiled.needs, placement, resources)
        device.dispatch(compiled.initializer, table)
        self._change(memory, _States.UNORDERED_ACCESS, _States.COMMON)
        device.submit()
        if upload is not None:
            ctypes.memset(upload.memory, POISONS[1], placement.span)

    def run(
        self, steps: Iterable[Step], *, late: Callable[[], None] = lambda: None
    ) -> list[Dispatch]:
        """Record steps on one list, submit it, and return what each left.

        Args:
            steps: the dispatches in order.
            late: is called when all is recorded, before it is submitted.

        Raises:
            HResultError: a call failed, or the device is gone.
            TooLargeError: the steps take too much memory.
        """
        steps = list(steps)
        images = [self._image(step, number) for number, step in enumerate(steps, self._steps)]
        self._steps += len(steps)
        starts = self._load(images)
        back = self._buffers.get("readback", sum(map(len, images)), _Heap.READBACK)
        device, memory = self.device, _memory_of(step.site for step in steps)
        device.begin(self.heap)
        self._change(memory, _States.COMMON, _States.UNORDERED_ACCESS)
        upload = self._buffers.get("upload", 1, _Heap.UPLOAD)
        for step, start in zip(steps, starts, strict=True):
            self._copy_in(step.site, upload, start)
            arena = step.site.resources.arena
            device.change([arena.buffer], _States.COMMON, _States.UNORDERED_ACCESS)
            device.dispatch(step.site.compiled.operator, step.site.table)
            device.change([arena.buffer], _States.UNORDERED_ACCESS, _States.COPY_SOURCE)
            device.copy(back, start, arena.buffer, arena.offset, arena.size)
            device.change([arena.buffer], _States.COPY_SOURCE, _States.COMMON)
        self._change(memory, _States.UNORDERED_ACCESS, _States.COMMON)
        late()
        device.submit()
        content = mapped(back, sum(map(len, images)))
        return [
            _seen(step, image, content[start : start + len(image)])
            for step, image, start in zip(steps, images, starts, strict=True)
        ]

    def variations(self, site: Site, numbers: Iterable[int]) -> list[Step]:
        """Return a step for each variation; without others where DirectML has taken inputs over."""
        fixed = site.placement.any_owned()
        return [Step(site, 0 if fixed else number) for number in numbers]

    def _data(self, case: Case, variation: int) -> dict[str, Array]:
        key = case.identifier, variation
        if key not in self._inputs:
            self._inputs[key] = varied(case, variation).inputs()
        return self._inputs[key]

    def _image(self, step: Step, number: int) -> Array:
        poison = POISONS[number % len(POISONS)]
        return step.site.placement.image(self._data(step.site.case, step.variation), poison)

    def _load(self, images: Sequence[Array]) -> list[int]:
        """Write images to the upload buffer, and return where each begins."""
        size = sum(map(len, images))
        if size > MOST_BYTES:
            raise TooLargeError(f"its dispatches take {size >> 20:,} MiB")
        upload = self._buffers.get("upload", size, _Heap.UPLOAD)
        starts, start = [], 0
        for image in images:
            ctypes.memmove(upload.memory + start, image.ctypes.data, len(image))
            starts.append(start)
            start += len(image)
        return starts

    def _change(
        self,
        buffers: Sequence[Buffer],
        before: D3D12_RESOURCE_STATES,
        after: D3D12_RESOURCE_STATES,
    ) -> None:
        if buffers:
            self.device.change(buffers, before, after)

    def _copy_in(self, site: Site, upload: Buffer, start: int) -> None:
        arena = site.resources.arena
        self.device.change([arena.buffer], _States.COMMON, _States.COPY_DEST)
        self.device.copy(arena.buffer, arena.offset, upload, start, arena.size)
        self.device.change([arena.buffer], _States.COPY_DEST, _States.COMMON)

    def _poison(self, region: Region) -> None:
        source = self._buffers.get("poison", _POISON_BYTES, _Heap.UPLOAD)
        ctypes.memset(source.memory, POISONS[0], _POISON_BYTES)
        for start in range(0, region.size, _POISON_BYTES):
            count = min(_POISON_BYTES, region.size - start)
            self.device.copy(region.buffer, region.offset + start, source, 0, count)


def _memory_of(sites: Iterable[Site]) -> list[Buffer]:
    """Return the scratch and persistent buffers of sites, each once."""
    buffers: dict[int, Buffer] = {}
    for site in sites:
        for region in (site.resources.temporary, site.resources.persistent):
            if region is not None:
                buffers[id(region.buffer)] = region.buffer
    return list(buffers.values())


def _seen(step: Step, before: Array, after: Array) -> Dispatch:
    arrays, faults = inspect(step.site.placement, [before], [after])
    # What was not written holds a poison, which judging finds: one dispatch alone cannot tell.
    intrusions = tuple(fault for fault in faults if fault.kind in _INTRUSIONS)
    return Dispatch(step.variation, arrays, intrusions)
