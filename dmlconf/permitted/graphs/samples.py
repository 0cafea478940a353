"""Evaluations of a graph with perturbed intermediates, to see how far errors move its outputs.

The method is Monte Carlo arithmetic (Parker 1997). Most samples move each element of a node's
output to the lowest or the highest permitted value, or a random part of the way. If the rule of x
permits 3.9 to 4.1, samples of sqrt(x) are 1.975, 2.025 and numbers between.

docs/decisions/0026-which-samples-of-a-graph.md measures the choice of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.graphs.model import Node, Slot
from dmlconf.permitted.graphs.bands import AllowanceOf, Band, band_of
from dmlconf.permitted.graphs.float32_edges import with_float32_edges
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.permitted.numbers.rounding import sizes_of
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = [
    "RANDOM_SAMPLES",
    "Sample",
    "Unrounded",
    "fused_samples",
    "samples",
    "unrounded",
]

RANDOM_SAMPLES: Final = 8
"""Samples in which each element of each intermediate moves, at random, to its lowest or to its
highest permitted value."""

_INSIDE_SAMPLES: Final = 4
"""Samples in which each element of each intermediate moves a random part of the way."""

_FUSED_SAMPLES: Final = 6
"""Samples in which random elements of FLOAT16 edges keep their FLOAT32 values, as in fused kernels.
"""

_FIRST_INSIDE: Final = 1000
"""The first seed of the samples that move a part of the way."""

_MOST_KEPT: Final = 1 << 10
"""Random numbers for up to this many elements are kept for the next graph."""

Chooser = Callable[[Band, int], Array]
"""Returns how far each element moves, from -1 to 1, given the intermediate's band and number."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An evaluation of a graph on moved intermediates.

    Attributes:
        beyond: by output of a node, the elements that `Band.beyond` marks in this evaluation;
            outputs that the sample does not move within their bands are left out.
    """

    values: NodeValues
    beyond: Mapping[Slot, Array]


def _choosers() -> Iterator[Chooser]:
    """Yield the ways to move all intermediates; first those in which no error is random."""
    yield lambda band, number: np.ones(band.right.shape)
    yield lambda band, number: -np.ones(band.right.shape)
    yield lambda band, number: np.where(band.right >= 0, 1.0, -1.0)
    yield lambda band, number: np.where(band.right < 0, 1.0, -1.0)
    # Where a range contains 0, sums of magnitudes are greatest at the end that is farther from 0.
    yield lambda band, number: np.where(sizes_of(band.highest) >= sizes_of(band.lowest), 1.0, -1.0)
    for sample in range(_INSIDE_SAMPLES):
        yield partial(_by_chance, sample=_FIRST_INSIDE + sample, inside=True)
    for sample in range(RANDOM_SAMPLES):
        yield partial(_by_chance, sample=sample, inside=False)


_SCALED_BY_EXTREMES: Final = frozenset({"DYNAMIC_QUANTIZE_LINEAR"})
"""Operators that scale all elements by the least and the greatest one."""

_APART: Final = tuple(ends for ends in product((-1.0, 1.0), repeat=3) if len(set(ends)) > 1)
"""The directions in which the least, the greatest and all other elements move."""


def _extremes_apart(band: Band, number: int, *, ends: Sequence[float]) -> Array:
    least, greatest, others = ends
    values = band.right
    comparable = values[~np.isnan(values)] if values.dtype.kind == "f" else values.ravel()
    if not comparable.size:
        return np.full(values.shape, others)
    far = np.where(values == comparable.max(), greatest, others)
    return np.where(values == comparable.min(), least, far)


def _by_chance(band: Band, number: int, *, sample: int, inside: bool) -> Array:
    draw = _draw if band.right.size <= _MOST_KEPT else _draw.__wrapped__
    far: Array = draw(sample, number, band.right.size).reshape(band.right.shape)
    return far if inside else np.where(far < 0, -1.0, 1.0)


@lru_cache(maxsize=1024)
def _draw(sample: int, number: int, count: int) -> Array:
    return np.random.Generator(np.random.PCG64([sample, number])).uniform(-1, 1, count)


_CHOOSE_ALIKE: Final = frozenset(
    {
        "ADAM_OPTIMIZER",
        "RESAMPLE",
        "RESAMPLE1",
        "RESAMPLE2",
        "RESAMPLE3",
        "UPSAMPLE_2D",
    }
)
"""Operators whose kernels choose the same candidate for all elements. In a sum of many elements,
the errors of these operators add up, while random errors partly cancel."""

_MOST_ALIKE: Final = 16
"""The most candidates of an output that are tried for all elements."""


def _candidates(case: Case, tensor: str, allowance_of: AllowanceOf) -> Sequence[Interval]:
    """Return the candidates of an output if kernels choose one for all elements, else none."""
    if case.operator_name not in _CHOOSE_ALIKE or case.rule(tensor).kind is not RuleKind.ONE_OF:
        return ()
    return allowance_of(case, tensor).candidates


def _differing(candidates: Sequence[Interval]) -> list[int]:
    """Return the indices of candidates that differ from the first and from each other.

    Candidates that overlap in all elements do not differ. At most `_MOST_ALIKE` are returned.
    """
    chosen: list[int] = []
    for number, (low, high) in enumerate(candidates):
        others = (candidates[each] for each in chosen)
        if not any(((low <= most) & (least <= high)).all() for least, most in others):
            chosen.append(number)
    return chosen[1 : _MOST_ALIKE + 1]


def _alike(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    right: NodeValues,
    movable: Sequence[Slot],
) -> Iterator[Sample]:
    """Yield evaluations in which nodes take the same one of their candidates for all elements."""
    numbers = {
        (name, tensor): _differing(_candidates(right.cases[name], tensor, allowance_of))
        for name, tensor in movable
    }

    def taken(at: int) -> Sample:
        def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
            own_numbers = numbers.get((node.name, tensor), [])
            if at >= len(own_numbers):
                return values
            candidates = _candidates(own, tensor, allowance_of)
            if own_numbers[at] >= len(candidates):
                return values  # With other inputs, a node may have fewer candidates.
            return _inside(candidates[own_numbers[at]], values)

        return Sample(evaluate_nodes(case, evaluate, store=store, earlier=right), {})

    with np.errstate(all="ignore"):
        yield from map(taken, range(max(map(len, numbers.values()))))


def _inside(candidate: Interval, values: Array) -> Array:
    """Return the middle of a candidate; of 65504 to infinity, 65504.

    Elements that may have any value, or only NaN, keep the number that they have in `values`.
    """
    low, high = (end.astype(np.float64) for end in candidate)
    middle = low + (high - low) / 2
    inside = np.where(np.isfinite(low), low, high)
    inside = np.where(np.isfinite(middle), middle, inside)
    return np.where(np.isfinite(inside) | (low == high), inside, values).astype(values.dtype)


@dataclass(frozen=True, slots=True)
class Unrounded:
    """A graph with FLOAT32 edges.

    Attributes:
        case: the graph that `with_float32_edges` returns.
        values: the outputs of its nodes.
        data_types: the data types of these outputs in the original graph.
    """

    case: Case
    values: NodeValues
    data_types: Mapping[Slot, np.dtype[Any]]


@np.errstate(all="ignore")
def unrounded(case: Case, evaluate: Evaluate) -> Unrounded | None:
    """Return the graph with FLOAT32 edges and its outputs; None if no node stores FLOAT16."""
    data_types = {
        (node.name, name): tensor.DataType.dtype
        for node in case.graph.operator_nodes
        for name, tensor in node.outputs.items()
    }
    if np.dtype(np.float16) not in data_types.values():
        return None
    whole = with_float32_edges(case)
    return Unrounded(whole, evaluate_nodes(whole, evaluate), data_types)


def samples(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    whole: Unrounded | None,
) -> Iterator[Sample]:
    """Yield samples: the nodes' results from moved intermediates; no sample if none can move.

    The last `RANDOM_SAMPLES` move each element to one of its ends at random. Some samples move only
    the last intermediates, since RELU may hide errors if earlier ones move too.

    Args:
        bands: the bands of all outputs of nodes around `right`, the right evaluation.
        whole: the graph with FLOAT32 edges; None if no node stores FLOAT16.
    """
    fed = {(link.from_node, link.from_tensor) for link in case.graph.intermediate_edges}
    movable = [slot for slot in bands if slot in fed and not bands[slot].exact]
    if not movable:
        return
    numbers = {slot: number for number, slot in enumerate(bands)}

    def moved(choose: Chooser, slots: set[Slot]) -> Sample:
        beyond: dict[Slot, Array] = {}

        def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
            slot = node.name, tensor
            if slot not in slots:
                return values
            # The permitted values follow from the inputs that the node has in this evaluation.
            unmoved = values is bands[slot].right
            band = bands[slot] if unmoved else band_of(own, tensor, values, allowance_of)
            if band.beyond is not None:
                beyond[slot] = band.beyond
            return band.moved(choose(band, numbers[slot]))

        with np.errstate(all="ignore"):
            return Sample(evaluate_nodes(case, evaluate, store=store, earlier=right), beyond)

    if whole is not None:
        yield Sample(_with_truncated_stores(case, evaluate, right, whole), {})
    up, down, *_ = choosers = list(_choosers())
    if _SCALED_BY_EXTREMES & set(case.graph.operators):
        choosers = [partial(_extremes_apart, ends=ends) for ends in _APART] + choosers
    yield from _alike(case, evaluate, allowance_of, right, movable)
    for last in _last(movable):
        yield moved(up, last)
        yield moved(down, last)
    for choose in choosers:
        yield moved(choose, fed)


@np.errstate(all="ignore")
def _with_truncated_stores(
    case: Case, evaluate: Evaluate, right: NodeValues, whole: Unrounded
) -> NodeValues:
    """Return the nodes' results if every store in FLOAT16 is truncated.

    Measured: DirectML 1.15.4 truncates what FLOAT16 nodes store.
    """

    def truncate(node: Node, own: Case, tensor: str, values: Array) -> Array:
        slot = node.name, tensor
        if whole.data_types[slot] == np.float16:
            stores[slot] = toward_zero(values.astype(np.float64)).astype(np.float16)
            return stores[slot].astype(values.dtype)
        stores[slot] = values
        return values

    stores: dict[Slot, Array] = {}
    evaluate_nodes(whole.case, evaluate, store=truncate, earlier=whole.values)
    return evaluate_nodes(
        case,
        evaluate,
        store=lambda node, own, tensor, values: stores[node.name, tensor],
        earlier=right,
    )


def _last(slots: Sequence[Slot]) -> Iterator[set[Slot]]:
    """Yield the last item, the last two, the last four and so on, but not all items."""
    count = 1
    while count < len(slots):
        yield set(slots[-count:])
        count *= 2


@np.errstate(all="ignore")
def fused_samples(whole: Unrounded, evaluate: Evaluate) -> tuple[Mapping[Slot, Array], ...]:
    """Return the nodes' results if FLOAT16 edges keep FLOAT32, as in fused kernels.

    In the first item, no edge that `with_float32_edges` changes is rounded. In the other items,
    random elements are rounded up or down to FLOAT16.
    """

    def partly(sample: int) -> Mapping[Slot, Array]:
        generator = np.random.Generator(np.random.PCG64([sample]))

        def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
            if whole.data_types[node.name, tensor] != np.float16 or values.dtype == np.float16:
                return values
            return _rounded_by_chance(values, generator)

        return evaluate_nodes(whole.case, evaluate, store=store, earlier=whole.values).outputs

    return whole.values.outputs, *(partly(sample) for sample in range(_FUSED_SAMPLES))


def _rounded_by_chance(values: Array, generator: np.random.Generator) -> Array:
    """Return each FLOAT32 number as it is, or one of the FLOAT16 numbers next to it."""
    near = values.astype(np.float16)
    above = np.where(near >= values, near, np.nextafter(near, np.float16(np.inf)))
    below = np.where(near <= values, near, np.nextafter(near, np.float16(-np.inf)))
    chosen = generator.integers(0, 3, values.shape)
    rounded = np.choose(chosen, [values, above.astype(values.dtype), below.astype(values.dtype)])
    return np.where(np.isfinite(near), rounded, values)
