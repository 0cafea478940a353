"""The dispatches of a circumstance, called steps, that `bench` submits together.

A step runs on a site: the case's compiled operator, its memory and its binding table. The arena of
a site is the memory of all tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from dmlconf.backends.circumstances import Dispatch
from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.memory import Buffer
from dmlconf.backends.directml.dispatch.bindings import Resources, bind_operator
from dmlconf.backends.directml.dispatch.inspection import inspect
from dmlconf.backends.directml.dispatch.operators import CompiledOperator
from dmlconf.backends.directml.dispatch.placement import Placement
from dmlconf.backends.directml.dispatch.staging import mapped
from dmlconf.backends.protocol import FaultKind
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array

__all__ = ["Load", "Site", "Step", "Work", "memory_of"]

_INTRUSIONS: Final = frozenset({FaultKind.GUARD_BAND, FaultKind.INPUT})


@dataclass(frozen=True, slots=True)
class Site:
    """A compiled case with memory and a binding table; `desc` is the desc of the table."""

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
        """Return the site with other memory and the same table, to which `bind` binds it."""
        return replace(self, resources=resources)


@dataclass(frozen=True, slots=True)
class Step:
    """One dispatch; `variation` as in `Dispatch`."""

    site: Site
    variation: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """A step, with the bytes of its arena before it.

    Attributes:
        start: the offset of `image` in the upload buffer.
        image: the bytes, UINT8.
        back: the offset in the readback buffer to which the arena is copied after the step; None
            if it is not read back.
    """

    step: Step
    start: int
    image: Array
    back: int | None


@dataclass(frozen=True, slots=True)
class Work:
    """Steps, with buffers for the bytes of their arenas before and after them."""

    loads: tuple[Load, ...]
    upload: Buffer
    back: Buffer

    def dispatches(self) -> list[Dispatch]:
        """Return the results of the steps that are read back, after they have run."""
        ends = [load.back + len(load.image) for load in self.loads if load.back is not None]
        content = mapped(self.back, max(ends, default=0))
        return [
            _dispatch(load, content[load.back : load.back + len(load.image)])
            for load in self.loads
            if load.back is not None
        ]


def memory_of(sites: Iterable[Site]) -> list[Buffer]:
    """Return the scratch and persistent buffers of sites, each once."""
    buffers: dict[int, Buffer] = {}
    for site in sites:
        for region in (site.resources.temporary, site.resources.persistent):
            if region is not None:
                buffers[id(region.buffer)] = region.buffer
    return list(buffers.values())


def _dispatch(load: Load, after: Array) -> Dispatch:
    arrays, faults = inspect(load.step.site.placement, [load.image], [after])
    # A single dispatch does not show whether an element was written.
    intrusions = tuple(fault for fault in faults if fault.kind in _INTRUSIONS)
    in_place = load.step.site.case.in_place
    return Dispatch(load.step.variation, arrays, intrusions, in_place=in_place)
