"""Batches of cases that run together. A case's arena is the memory of all its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dmlconf.backends.directml.api.dml import BINDING_ALIGNMENT
from dmlconf.backends.directml.dispatch.operators import CompiledOperator
from dmlconf.backends.directml.dispatch.placement import Placement
from dmlconf.cases.model import Case

__all__ = ["MOST_BYTES", "MOST_DESCRIPTORS", "MOST_WORK", "Batch", "Member", "Prepared"]

MOST_BYTES: Final = 1 << 26
"""The most bytes of arenas, scratch and persistent memory in a batch of several cases."""

MOST_DESCRIPTORS: Final = 1 << 12
"""The most descriptors in a batch of several cases."""


MOST_WORK: Final = 1 << 28
"""The most terms that a batch of several cases computes, as `dmlconf.cases.work` counts them.

Each case is dispatched twice. At 10^9 terms a second, as in the Wine lab, that takes half a second;
Windows may remove a device after 2 s.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case whose operator or graph is compiled.

    Attributes:
        seconds: how long compiling took.
        work: about how many terms the device computes in a dispatch.
    """

    case: Case
    compiled: CompiledOperator
    placement: Placement
    seconds: float = 0.0
    work: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A case of a batch, with offsets in the batch's memory and descriptors."""

    prepared: Prepared
    arena: int
    temporary: int
    persistent: int
    descriptor: int


@dataclass(slots=True)
class Batch:
    """Cases that are recorded and submitted together.

    Attributes:
        arena: bytes of all arenas.
        temporary: bytes of all scratch memory.
        persistent: bytes of all persistent memory.
        work: about how many terms the device computes in one dispatch of each case.
    """

    members: list[Member] = field(default_factory=list)
    arena: int = 0
    temporary: int = 0
    persistent: int = 0
    descriptors: int = 0
    work: int = 0

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def add(self, prepared: Prepared) -> bool:
        """Add a case if it fits, and return whether it fits. The first case always fits."""
        compiled, placement = prepared.compiled, prepared.placement
        member = Member(
            prepared,
            _aligned(self.arena, placement.alignment),
            _aligned(self.temporary, BINDING_ALIGNMENT),
            _aligned(self.persistent, BINDING_ALIGNMENT),
            self.descriptors,
        )
        arena = member.arena + placement.span
        temporary = member.temporary + compiled.temporary_size
        persistent = member.persistent + compiled.persistent_size
        descriptors = self.descriptors + sum(compiled.descriptors)
        work = self.work + prepared.work
        large = (
            arena + temporary + persistent > MOST_BYTES
            or descriptors > MOST_DESCRIPTORS
            or work > MOST_WORK
        )
        if large and self.members:
            return False
        self.members.append(member)
        self.arena, self.temporary, self.persistent = arena, temporary, persistent
        self.descriptors, self.work = descriptors, work
        return True


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
