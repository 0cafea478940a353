"""What the outputs of a graph may be: what its nodes permit, carried through those behind them.

The graph is evaluated many times. Each time every intermediate is moved to an end of what its
node's rule permits: all up, all down, towards zero, away from it, and each element up or down by
chance. What the outputs do then shows how far a right implementation may lead them:

- the hull of these samples holds errors that go together, such as those of truncation;
- a multiple of the root mean square of the samples by chance holds independent errors;
- the last node's own rule is added to both.

Once more, intermediates are kept in FLOAT32 where edges are FLOAT16, as fused kernels may do. Where
no rule leaves room, as with small whole numbers, every sample is the same, and the graph is exact.

docs/decisions/0020-permitted-error-of-graphs.md derives and measures this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import Node, Slot
from dmlconf.precision.allowance import Allowance, Interval
from dmlconf.precision.room import permitted_ends
from dmlconf.precision.rules import undefined
from dmlconf.reference.graph_evaluation import (
    Evaluate,
    NodeValues,
    evaluate_nodes,
    wider,
)
from dmlconf.tensors.datatypes import Array

__all__ = ["RANDOM_SAMPLES", "WIDENING", "graph_candidates"]

RANDOM_SAMPLES: Final = 8
"""Evaluations in which each element of each intermediate goes up or down by chance."""

WIDENING: Final = 4.0
"""How many times the root mean square of the samples by chance a right output may be off."""

AllowanceOf = Callable[[Case, str], Allowance]
"""Gives the allowance of an output of one operator."""

Chooser = Callable[[Array, int], Array]
"""Tells which elements go up, from the values and the intermediate's number."""


@dataclass(frozen=True, slots=True)
class _Room:
    """What a node's rule permits of one of its outputs.

    Attributes:
        right: what the reference computes.
        lowest: the least right values, FLOAT64 or the integers' own type.
        highest: the greatest.
    """

    right: Array
    lowest: Array
    highest: Array

    @property
    def exact(self) -> bool:
        """Whether nothing but the right values is permitted."""
        same = (self.lowest == self.right) & (self.highest == self.right)
        if self.right.dtype.kind == "f":
            same |= np.isnan(self.right) & np.isnan(self.lowest) & np.isnan(self.highest)
        return bool(same.all())

    def moved(self, values: Array, up: Array) -> Array:
        """Return values as far off as the right ones may be, upwards or downwards."""
        with np.errstate(all="ignore"):
            return _stored(self.end(values, np.where(up, self.highest, self.lowest)), values)

    def end(self, values: Array, end: Array) -> Array:
        """Return values plus the distance from the right values to an end, FLOAT64."""
        if values.dtype.kind != "f":
            return values + (end.astype(np.float64) - self.right)
        right = self.right.astype(np.float64)
        with np.errstate(all="ignore"):
            plain = np.isfinite(right) & np.isfinite(end)
            same = ~np.isfinite(values) | np.isfinite(right)
            shifted = np.where(plain, values + (end - right), np.where(same, end, values))
        return np.where(np.isnan(end), values, shifted)


def _stored(values: Array, like: Array) -> Array:
    """Return FLOAT64 values in another data type, integers within its bounds."""
    if like.dtype.kind == "f":
        return values.astype(like.dtype)
    limits = np.iinfo(like.dtype)
    # FLOAT64 holds no integer of 64 bits for sure; what does not move stays.
    moved = np.clip(values, float(limits.min), float(limits.max))
    same = moved == like
    return np.where(same, like, np.where(same, 0, moved).astype(like.dtype))


def graph_candidates(
    case: GraphCase, evaluate: Evaluate, allowance_of: AllowanceOf
) -> dict[str, Sequence[Interval]]:
    """Return for each graph output the intervals of which a right element lies in at least one.

    Args:
        case: the graph, which breaks no constraint.
        evaluate: computes one operator.
        allowance_of: gives what its rules permit.
    """
    right = evaluate_nodes(case, evaluate)
    rooms = {
        (name, tensor): _room(node, tensor, right.outputs[name, tensor], allowance_of)
        for name, node in right.cases.items()
        for tensor in node.outputs()
    }
    samples = list(_samples(case, evaluate, right, rooms))
    wide = evaluate_nodes(wider(case), evaluate).outputs if _has_float16(right) else None
    indices = _indices(case)
    sources = case.graph.output_sources()
    candidates: dict[str, Sequence[Interval]] = {}
    for output, slot in sources.items():
        values = [sample[slot] for sample in samples]
        unrounded = None if wide is None else wide[slot]
        join = _each if slot in indices else _hull
        candidates[output] = join(rooms[slot], values, unrounded)
    return candidates


def _room(case: Case, tensor: str, right: Array, allowance_of: AllowanceOf) -> _Room:
    rule = case.rule(tensor)
    flat = np.ascontiguousarray(right).ravel()
    lowest, highest = permitted_ends(flat, rule, allowance_of(case, tensor))
    lowest, highest = lowest.reshape(right.shape), highest.reshape(right.shape)
    if rule.flushes and right.dtype.kind == "f":
        small = np.abs(right) < np.finfo(right.dtype).tiny
        lowest = np.where(small, np.minimum(lowest, 0), lowest)
        highest = np.where(small, np.maximum(highest, 0), highest)
    return _Room(right, lowest, highest)


def _has_float16(values: NodeValues) -> bool:
    return any(array.dtype == np.float16 for array in values.outputs.values())


def _choosers() -> Iterator[Chooser]:
    """Yield the ways to move intermediates; first those in which errors go together."""
    yield lambda values, number: np.ones(values.shape, bool)
    yield lambda values, number: np.zeros(values.shape, bool)
    yield lambda values, number: values >= 0
    yield lambda values, number: values < 0
    for sample in range(RANDOM_SAMPLES):
        yield lambda values, number, sample=sample: (  # type: ignore[misc]
            np.random.Generator(np.random.PCG64([sample, number])).random(values.shape) < 0.5
        )


def _samples(
    case: GraphCase, evaluate: Evaluate, right: NodeValues, rooms: Mapping[Slot, _Room]
) -> Iterator[Mapping[Slot, Array]]:
    """Yield what the nodes compute: first from what is right, then from moved intermediates.

    Nothing else is yielded where no intermediate can be moved.
    """
    yield right.outputs
    fed = {(link.from_node, link.from_tensor) for link in case.graph.intermediate_edges}
    numbers = {slot: number for number, slot in enumerate(rooms)}
    loose = {slot for slot in fed & rooms.keys() if not rooms[slot].exact}
    if not loose:
        return
    for choose in _choosers():

        def store(node: Node, tensor: str, values: Array, choose: Chooser = choose) -> Array:
            slot = node.name, tensor
            if slot not in loose:
                return values
            room = rooms[slot]
            open_elements = undefined(room.lowest, room.highest)
            moved = room.moved(values, choose(values, numbers[slot]))
            return np.where(open_elements, values, moved)

        yield evaluate_nodes(case, evaluate, store=store).outputs


def _indices(case: GraphCase) -> set[Slot]:
    """Return the outputs of nodes whose numbers are indices, so that nothing between two is right.

    Source: the names of the fields, and the pages of the operators that are named here.
    """
    slots: set[Slot] = set()
    sources = case.graph.sources()
    for node in case.graph.in_order():
        if not isinstance(node, Node):
            continue
        fed = any(sources.get((node.name, name)) in slots for name in node.inputs)
        for name, tensor in node.outputs.items():
            own = "Ind" in name or node.operator_name in _GIVE_INDICES
            if not _is_float(tensor) and (own or fed):
                slots.add((node.name, name))
    return slots


_GIVE_INDICES: Final = frozenset({"ARGMAX", "ARGMIN", "NONZERO_COORDINATES"})


def _is_float(tensor: TensorDesc) -> bool:
    return tensor.DataType.is_float


def _each(room: _Room, values: Sequence[Array], unrounded: Array | None) -> Sequence[Interval]:
    """Return each sample's values as candidates, and the node's own room as another."""
    others = [] if unrounded is None else [unrounded]
    distinct: list[Array] = []
    for array in (*values, *others):
        if not any(np.array_equal(array, known) for known in distinct):
            distinct.append(array)
    own = _stored(room.lowest, room.right), _stored(room.highest, room.right)
    return own, *((array, array) for array in distinct)


def _hull(room: _Room, values: Sequence[Array], unrounded: Array | None) -> Sequence[Interval]:
    """Return the hull of the samples, widened, and the infinities and NaN that occur beside it."""
    right = values[0].astype(np.float64)
    with np.errstate(all="ignore"):
        ends = [room.end(array, end) for array in values for end in (room.lowest, room.highest)]
        if unrounded is not None:
            ends += _around_unrounded(unrounded, room)
        stacked = np.stack(ends)
        by_chance = [array.astype(np.float64) - right for array in values[-RANDOM_SAMPLES:]]
        deviation = np.sqrt(np.mean(np.square(np.stack(by_chance)), axis=0))
        widening = np.where(np.isfinite(deviation), WIDENING * deviation, 0.0)
        own = np.stack([room.lowest - widening, room.highest + widening])
        low = np.minimum(_least(stacked), _least(own))
        high = np.maximum(_greatest(stacked), _greatest(own))
    nothing = ~np.isfinite(stacked).any(axis=0)
    low = np.where(nothing, right, np.where(np.isnan(low), right, low))
    high = np.where(nothing, right, np.where(np.isnan(high), right, high))
    open_elements = undefined(room.lowest, room.highest)
    hull = (np.where(open_elements, room.lowest, low), np.where(open_elements, room.highest, high))
    intervals = [_outward(*hull, room.right)]
    if room.right.dtype.kind == "f":
        for special in (np.nan, np.inf, -np.inf):
            present = np.isnan(stacked) if np.isnan(special) else stacked == special
            where = present.any(axis=0) & ~open_elements
            if where.any():
                low, high = (
                    np.where(where, special, end).astype(end.dtype) for end in intervals[0]
                )
                intervals.append((low, high))
    return intervals


def _least(stacked: Array) -> Array:
    least: Array = np.where(np.isfinite(stacked), stacked, np.inf).min(axis=0)
    return least


def _greatest(stacked: Array) -> Array:
    greatest: Array = np.where(np.isfinite(stacked), stacked, -np.inf).max(axis=0)
    return greatest


def _around_unrounded(unrounded: Array, room: _Room) -> list[Array]:
    """Return what an output stored once, to nearest or truncated, may be; with the node's room."""
    values = unrounded.astype(np.float64)
    stored = unrounded.astype(room.right.dtype)
    if room.right.dtype.kind != "f":
        return [values]
    towards = np.nextafter(stored, room.right.dtype.type(0))
    truncated = np.where(np.abs(stored.astype(np.float64)) > np.abs(values), towards, stored)
    ends = room.lowest, room.highest
    return [room.end(array, end) for array in (stored, truncated) for end in ends]


def _outward(low: Array, high: Array, like: Array) -> Interval:
    """Return ends in the output's data type, rounded so that the interval does not shrink."""
    if like.dtype.kind != "f":
        limits = np.iinfo(like.dtype)
        if like.dtype.itemsize == 8:
            return _stored(low, like), _stored(high, like)
        return (
            np.clip(np.floor(low), limits.min, limits.max).astype(like.dtype),
            np.clip(np.ceil(high), limits.min, limits.max).astype(like.dtype),
        )
    return low, high
