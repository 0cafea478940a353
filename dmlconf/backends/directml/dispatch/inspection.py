"""Read outputs and find faults in the arena of a case, the memory of all its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.backends.directml.dispatch.placement import (
    PlacedTensor,
    Placement,
    decode,
    elements_of,
)
from dmlconf.backends.protocol import Fault, FaultKind
from dmlconf.documents.wording import counted
from dmlconf.tensors.datatypes import Array, bits_of

__all__ = ["Inspection", "inspect"]

_BLOCK: Final = 1 << 18
"""How many elements are compared at once, so that no arena is copied whole."""


def inspect(
    placement: Placement, before: Sequence[Array], after: Sequence[Array]
) -> tuple[dict[str, Array], tuple[Fault, ...]]:
    """Return the outputs of the first dispatch by tensor, and the faults of all dispatches.

    `before` and `after` are the arena's bytes, UINT8, around each of one or two dispatches.
    """
    inspection = Inspection(placement)
    for old, new in zip(before, after, strict=True):
        inspection.add(old, new)
    return inspection.arrays, inspection.faults()


@dataclass(frozen=True, slots=True)
class _Region:
    """A part of the arena that must not change: an input, or a guard band.

    Attributes:
        begin: the offset of its first byte in the arena.
        end: the offset after its last byte.
        previous: the tensor before it; None if there is none.
        tensor: the input, or the tensor after the guard band; None at the end of the arena.
    """

    begin: int
    end: int
    previous: PlacedTensor | None
    tensor: PlacedTensor | None

    @property
    def is_input(self) -> bool:
        return self.tensor is not None and self.begin == self.tensor.offset


class Inspection:
    """Inspects the arena after each dispatch of a case.

    Attributes:
        arrays: the outputs of the first dispatch by tensor.
    """

    def __init__(self, placement: Placement) -> None:
        self.arrays: dict[str, Array] = {}
        self._placement = placement
        self._regions = list(_regions(placement))
        self._touched = [np.empty(0, np.int64) for _ in self._regions]
        self._unwritten: dict[str, Array] = {}
        self._different: dict[str, tuple[Array, Array]] = {}

    def add(self, before: Array, after: Array) -> None:
        """Inspect the arena's bytes, UINT8, before and after one dispatch."""
        for index, region in enumerate(self._regions):
            part = slice(region.begin, region.end)
            touched = _where_different(before[part], after[part])
            if len(touched):
                self._touched[index] = np.union1d(self._touched[index], touched)
        for tensor in self._placement.outputs:
            if tensor is not None:
                part = slice(tensor.offset, tensor.end)
                self._output(tensor, before[part], after[part])

    def _output(self, tensor: PlacedTensor, before: Array, after: Array) -> None:
        first = self.arrays.get(tensor.name)
        if tensor.in_place is None:
            among = self._unwritten.get(tensor.name)
            unwritten = _where_same(tensor, before, after, among)
            self._unwritten[tensor.name] = unwritten
        if first is None:
            self.arrays[tensor.name] = decode(tensor.desc, after)
            return
        now = elements_of(tensor.desc, after).ravel()
        different = _where_different(bits_of(first.ravel()), bits_of(now))
        self._different[tensor.name] = different, now[different]

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults of all dispatches."""
        return (*self._intrusions(), *self._output_faults())

    def _intrusions(self) -> Iterator[Fault]:
        for region, touched in zip(self._regions, self._touched, strict=True):
            if not len(touched):
                continue
            if region.is_input:
                assert region.tensor is not None
                count = _bytes(len(touched))
                message = f"{count} of {region.tensor.name} changed, the first at byte {touched[0]}"
                yield Fault(FaultKind.INPUT, message)
            else:
                yield Fault(FaultKind.GUARD_BAND, _guard_message(region, touched))

    def _output_faults(self) -> Iterator[Fault]:
        for tensor in self._placement.outputs:
            if tensor is None:
                continue
            unwritten = self._unwritten.get(tensor.name, np.empty(0, np.int64))
            if len(unwritten):
                message = f"{_elements_text(tensor, unwritten)} were not written"
                yield Fault(FaultKind.NOT_WRITTEN, message, tensor.name, unwritten)
            different, second = self._different.get(tensor.name, (unwritten[:0], unwritten[:0]))
            others = np.setdiff1d(different, unwritten) if len(different) else different
            if len(others):
                values = self.arrays[tensor.name].ravel()[others[0]]
                again = second[np.searchsorted(different, others[0])]
                examples = f"{values} and {again}"
                message = (
                    f"{_elements_text(tensor, others)} differ between two dispatches: {examples}"
                )
                yield Fault(FaultKind.NOT_DETERMINISTIC, message, tensor.name, others)


def _regions(placement: Placement) -> Iterator[_Region]:
    previous: PlacedTensor | None = None
    for tensor in [*placement.ordered(), None]:
        begin = previous.end if previous else 0
        yield _Region(begin, tensor.offset if tensor else placement.span, previous, tensor)
        if tensor and not tensor.is_output:
            yield _Region(tensor.offset, tensor.end, previous, tensor)
        previous = tensor


def _where_different(one: Array, other: Array) -> Array:
    """Return the indices at which two flat arrays differ, INT64."""
    differences = [
        start + np.flatnonzero(part != other[start : start + _BLOCK])
        for start, part in _blocks(one)
        if not np.array_equal(part, other[start : start + _BLOCK])
    ]
    return np.concatenate(differences) if differences else np.empty(0, np.int64)


def _where_same(tensor: PlacedTensor, before: Array, after: Array, among: Array | None) -> Array:
    """Return the indices of an output's elements whose bits a dispatch did not change, INT64.

    `among` are the indices to test; None for all.
    """
    old, new = (bits_of(elements_of(tensor.desc, content).ravel()) for content in (before, after))
    if among is not None:
        unchanged: Array = among[old[among] == new[among]]
        return unchanged
    matches = [
        start + np.flatnonzero(part == new[start : start + _BLOCK]) for start, part in _blocks(old)
    ]
    return np.concatenate(matches) if matches else np.empty(0, np.int64)


def _blocks(values: Array) -> Iterator[tuple[int, Array]]:
    for start in range(0, len(values), _BLOCK):
        yield start, values[start : start + _BLOCK]


def _guard_message(region: _Region, touched: Array) -> str:
    count = _bytes(len(touched))
    if region.previous is not None:
        where = f"{_bytes(int(touched[0]))} after the end of {region.previous.name}"
    else:
        assert region.tensor is not None
        count_before = region.tensor.offset - int(touched[-1])
        where = f"{_bytes(count_before)} before the start of {region.tensor.name}"
    return f"{count} of a guard band changed, {where}"


def _bytes(count: int) -> str:
    return counted(count, "byte")


def _elements_text(tensor: PlacedTensor, elements: Array) -> str:
    first = [int(i) for i in np.unravel_index(elements[0], tensor.desc.Sizes)]
    total = int(np.prod(tensor.desc.Sizes, dtype=np.int64))
    return f"{len(elements):,} of {total:,} elements of {tensor.name}, the first at {first},"
