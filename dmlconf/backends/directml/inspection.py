"""What two dispatches of a case left in the arena: the outputs, and what must not have happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dmlconf.backends.directml.placement import Place, Placement, decode
from dmlconf.backends.protocol import Fault, FaultKind
from dmlconf.tensors.datatypes import Array

__all__ = ["inspect"]


def inspect(
    placement: Placement, before: Sequence[Array], after: Sequence[Array]
) -> tuple[dict[str, Array], tuple[Fault, ...]]:
    """Return the outputs of the first dispatch by tensor, and the faults of both.

    Args:
        placement: where the tensors lie.
        before: the arena's bytes before each of the two dispatches.
        after: the arena's bytes behind each.
    """
    faults = list(_intrusions(placement, before, after))
    arrays: dict[str, Array] = {}
    for place in placement.outputs:
        if place is not None:
            results = [_output(place, image) for image in after]
            arrays[place.name] = results[0]
            faults += _conduct(place, [_output(place, image) for image in before], results)
    return arrays, tuple(faults)


def _output(place: Place, image: Array) -> Array:
    return decode(place.desc, image[place.offset : place.end])


def _intrusions(
    placement: Placement, before: Sequence[Array], after: Sequence[Array]
) -> Iterator[Fault]:
    """Yield a fault for each guard band and each input that changed in either dispatch."""
    changed = np.zeros(placement.span, bool)
    for old, new in zip(before, after, strict=True):
        changed |= old != new
    places = placement.ordered()
    previous: Place | None = None
    for place in [*places, None]:
        begin = previous.end if previous else 0
        end = place.offset if place else placement.span
        touched = np.flatnonzero(changed[begin:end])
        if len(touched):
            yield Fault(FaultKind.GUARD_BAND, _guard_message(previous, place, touched))
        if place and not place.is_output:
            touched = np.flatnonzero(changed[place.offset : place.end])
            if len(touched):
                count = _bytes(len(touched))
                message = f"{count} of {place.name} changed, the first at byte {touched[0]}"
                yield Fault(FaultKind.INPUT, message)
        previous = place


def _guard_message(previous: Place | None, place: Place | None, touched: Array) -> str:
    count = _bytes(len(touched))
    if previous is not None:
        where = f"{_bytes(int(touched[0]))} behind the end of {previous.name}"
    else:
        assert place is not None
        count_before = place.offset - int(touched[-1])
        where = f"{_bytes(count_before)} before the begin of {place.name}"
    return f"{count} of a guard band changed, {where}"


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' if count != 1 else ''}"


def _conduct(place: Place, before: Sequence[Array], after: Sequence[Array]) -> Iterator[Fault]:
    """Yield a fault where an output was not written, and where the two dispatches differ."""
    # Bits are compared, so that NaN is like itself.
    bits = [_bits(array) for array in after]
    untouched = np.full(len(bits[0]), place.in_place is None)
    if place.in_place is None:
        for old, new in zip(before, bits, strict=True):
            untouched &= _bits(old) == new
    unwritten = np.flatnonzero(untouched)
    if len(unwritten):
        message = f"{_told(place, unwritten)} kept what was there before"
        yield Fault(FaultKind.NOT_WRITTEN, message, place.name, unwritten)
    different = np.flatnonzero((bits[0] != bits[1]) & ~untouched)
    if len(different):
        values = " and ".join(str(array.ravel()[different[0]]) for array in after)
        message = f"{_told(place, different)} differ between two dispatches: {values}"
        yield Fault(FaultKind.NOT_DETERMINISTIC, message, place.name, different)


def _bits(array: Array) -> Array:
    return array.ravel().view(np.dtype(f"u{array.itemsize}"))


def _told(place: Place, elements: Array) -> str:
    first = [int(i) for i in np.unravel_index(elements[0], place.desc.Sizes)]
    total = int(np.prod(place.desc.Sizes, dtype=np.int64))
    return f"{len(elements):,} of {total:,} elements of {place.name}, the first at {first},"
