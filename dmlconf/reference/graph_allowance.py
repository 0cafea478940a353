"""What the outputs of a graph may be: what its nodes permit, carried through those behind them.

The graph is evaluated many times. Each time every intermediate is moved to an end of what its
node's rule permits: all up, all down, towards zero, away from it, and each element up or down by
chance. What the outputs do then shows how far a right implementation may lead them:

- the hull of these samples holds errors that go together, such as those of truncation;
- a multiple of the root mean square of the samples by chance holds independent errors: little more
  than that where one intermediate leads to an output, whose samples are all of one size;
- the last node's own rule is added to both.

Once more, intermediates are kept in FLOAT32 where edges are FLOAT16, as fused kernels may do. Where
no rule leaves room, as with small whole numbers, every sample is the same, and the graph is exact.

docs/decisions/0020-permitted-error-of-graphs.md derives and measures this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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

_INSIDE_SAMPLES: Final = 4
"""Evaluations in which each element of each intermediate goes a part of the way, by chance."""

_CHANCE: Final = 1000
"""From here on seeds are those of parts of the way."""

WIDENING: Final = 4.0
"""How many times the root mean square of the samples by chance a right output may be off at most,
where many independent errors come together."""

_LEAST_WIDENING: Final = 1.25
"""The same where a single error leads to an output: the samples' own size, and what they miss of a
function that turns round between its ends."""

_GAUSSIAN: Final = 2.3
"""The greatest of 8 samples in terms of their root mean square, where many errors come together."""

AllowanceOf = Callable[[Case, str], Allowance]
"""Gives the allowance of an output of one operator."""

Chooser = Callable[[Array, int], Array]
"""Tells how far each element goes, from -1 to 1, by the values and the intermediate's number."""


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

    def moved(self, far: Array) -> Array:
        """Return values as far off as the right ones may be, or a part of that.

        Args:
            far: from -1 for the lowest to 1 for the highest.
        """
        values = self.right
        with np.errstate(all="ignore"):
            ends = np.where(far > 0, self.highest, self.lowest)
            inside = np.isfinite(ends) & np.isfinite(values) & (np.abs(far) < 1)
            between = np.where(inside, values + np.abs(far) * (ends - values), ends)
            kept = np.isnan(ends) | undefined(self.lowest, self.highest)
            return np.where(kept, values, _stored(between, values))


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
    samples = [right, *_samples(case, evaluate, allowance_of, rooms)]
    wide = evaluate_nodes(wider(case), evaluate).outputs if _has_float16(right) else None
    indices = _indices(case)
    sources = case.graph.output_sources()
    candidates: dict[str, Sequence[Interval]] = {}
    for output, slot in sources.items():
        own = [_sample_room(sample, slot, rooms[slot], allowance_of) for sample in samples]
        unrounded = None if wide is None else wide[slot]
        join = _each if slot in indices else _hull
        candidates[output] = join(own, unrounded)
    return candidates


def _sample_room(sample: NodeValues, slot: Slot, right: _Room, allowance_of: AllowanceOf) -> _Room:
    """Return what the last node's rule permits beside what it computes from moved inputs."""
    name, tensor = slot
    values = sample.outputs[slot]
    if values is right.right:
        return right
    return _room(sample.cases[name], tensor, values, allowance_of)


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
    yield lambda values, number: np.ones(values.shape)
    yield lambda values, number: -np.ones(values.shape)
    yield lambda values, number: np.where(values >= 0, 1.0, -1.0)
    yield lambda values, number: np.where(values < 0, 1.0, -1.0)
    for sample in range(_INSIDE_SAMPLES):
        yield partial(_by_chance, sample=_CHANCE + sample, inside=True)
    for sample in range(RANDOM_SAMPLES):
        yield partial(_by_chance, sample=sample, inside=False)


def _by_chance(values: Array, number: int, *, sample: int, inside: bool) -> Array:
    generator = np.random.Generator(np.random.PCG64([sample, number]))
    far: Array = np.asarray(generator.uniform(-1, 1, values.shape))
    return far if inside else np.where(far < 0, -1.0, 1.0)


def _samples(
    case: GraphCase,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    rooms: Mapping[Slot, _Room],
) -> Iterator[NodeValues]:
    """Yield what the nodes compute from moved intermediates; nothing where none can be moved."""
    fed = {(link.from_node, link.from_tensor) for link in case.graph.intermediate_edges}
    numbers = {slot: number for number, slot in enumerate(rooms)}
    if all(rooms[slot].exact for slot in fed & rooms.keys()):
        return
    for choose in _choosers():

        def store(
            node: Node, own: Case, tensor: str, values: Array, choose: Chooser = choose
        ) -> Array:
            slot = node.name, tensor
            if slot not in fed:
                return values
            # What is permitted follows from the inputs that the node has in this evaluation.
            room = _room(own, tensor, values, allowance_of)
            return room.moved(choose(values, numbers[slot]))

        with np.errstate(all="ignore"):
            yield evaluate_nodes(case, evaluate, store=store)


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


def _each(rooms: Sequence[_Room], unrounded: Array | None) -> Sequence[Interval]:
    """Return what each sample permits as a candidate."""
    others = [] if unrounded is None else [(unrounded, unrounded)]
    ends = [(_stored(r.lowest, r.right), _stored(r.highest, r.right)) for r in rooms]
    distinct: list[Interval] = []
    for interval in (*ends, *others):
        if not any(_same(interval, known) for known in distinct):
            distinct.append(interval)
    return distinct


def _same(one: Interval, other: Interval) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _hull(rooms: Sequence[_Room], unrounded: Array | None) -> Sequence[Interval]:
    """Return the hull of the samples, widened, and the infinities and NaN that occur beside it.

    Args:
        rooms: of the samples, the right one first and those by chance last.
        unrounded: what the node computes where edges hold FLOAT32; None where they do anyway.
    """
    room = rooms[0]
    right = room.right.astype(np.float64)
    with np.errstate(all="ignore"):
        ends = [end.astype(np.float64) for each in rooms for end in (each.lowest, each.highest)]
        if unrounded is not None:
            ends += _around_unrounded(unrounded, room)
        bounds = np.stack(ends)
        by_chance = [each.right.astype(np.float64) - right for each in rooms[-RANDOM_SAMPLES:]]
        widening = _widening(np.stack(by_chance))
        own = np.stack([room.lowest - widening, room.highest + widening])
        low = np.minimum(_least(bounds), _least(own))
        high = np.maximum(_greatest(bounds), _greatest(own))
    nothing = ~np.isfinite(bounds).any(axis=0)
    low = np.where(nothing, right, np.where(np.isnan(low), right, low))
    high = np.where(nothing, right, np.where(np.isnan(high), right, high))
    open_elements = undefined(room.lowest, room.highest)
    hull = (np.where(open_elements, room.lowest, low), np.where(open_elements, room.highest, high))
    intervals = [_outward(*hull, room.right)]
    if room.right.dtype.kind == "f":
        for special in (np.nan, np.inf, -np.inf):
            present = np.isnan(bounds) if np.isnan(special) else bounds == special
            where = present.any(axis=0) & ~open_elements
            if where.any():
                low, high = (
                    np.where(where, special, end).astype(end.dtype) for end in intervals[0]
                )
                intervals.append((low, high))
    return intervals


def _widening(deviations: Array) -> Array:
    """Return how far independent errors may lead each element.

    Args:
        deviations: of the samples by chance, the first axis theirs.
    """
    sizes = np.abs(deviations)
    deviation = np.sqrt(np.mean(np.square(sizes), axis=0))
    deviation = np.where(np.isfinite(deviation), deviation, 0.0)
    # A single error is as large in every sample; the more there are, the more they differ.
    moved = deviation > 0
    greatest = float((sizes.max(axis=0)[moved] / deviation[moved]).max(initial=1.0))
    share = min(1.0, (greatest - 1) / (_GAUSSIAN - 1))
    factor = _LEAST_WIDENING + (WIDENING - _LEAST_WIDENING) * share
    widening: Array = factor * deviation
    return widening


def _least(bounds: Array) -> Array:
    least: Array = np.where(np.isfinite(bounds), bounds, np.inf).min(axis=0)
    return least


def _greatest(bounds: Array) -> Array:
    greatest: Array = np.where(np.isfinite(bounds), bounds, -np.inf).max(axis=0)
    return greatest


def _around_unrounded(unrounded: Array, room: _Room) -> list[Array]:
    """Return what an output stored once, to nearest or truncated, may be, with the node's room."""
    values = unrounded.astype(np.float64)
    if room.right.dtype.kind != "f":
        return [values]
    stored = unrounded.astype(room.right.dtype)
    towards = np.nextafter(stored, room.right.dtype.type(0))
    truncated = np.where(np.abs(stored.astype(np.float64)) > np.abs(values), towards, stored)
    right = room.right.astype(np.float64)
    below, above = room.lowest - right, room.highest - right
    below, above = (np.where(np.isfinite(part), part, 0.0) for part in (below, above))
    return [end + part for end in (stored, truncated) for part in (below, above)]


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
