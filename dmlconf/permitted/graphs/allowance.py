"""Permitted outputs of a graph: the errors of its nodes, carried through later nodes.

The graph is evaluated many times, each time with other permitted errors of the intermediates. Such
an evaluation is a sample (`samples`). If y = 2 * x, and the rule of x permits 1.00 to 1.02, samples
of y are 2.00 to 2.04. An element of an output may lie

- between the least and the greatest sample;
- up to 4 root mean square errors of the random samples from the right value, since independent
  errors may add up, or up to 1.25 if all random samples are equally far off;
- around the samples in which some or all FLOAT16 intermediates stay FLOAT32, as in fused kernels
  (`float32_edges`).

The last node's own rule permits an error around each of these numbers (`bands`). Some elements have
other right values:

- any value, if an intermediate that leads to the element may have any value (`reach`);
- values up to an infinity, if an intermediate may lie on either side of a pole (`poles`);
- any value at a jump, such as the gradient of one of two equal maxima; a remainder whose quotient
  lies next to an integer is any number up to the size of the divisor (`jumps`);
- what follows from true or from false, if numbers are equal within their errors (`decisions`);
- what follows from zeros for subnormal inputs, or from zeros of the other sign (`alternatives`);
- each whole number that FLOOR gives for a range, but nothing between two of them (`steps`);
- the index of any of several elements whose ranges overlap (`choices`);
- other coordinates, and their count, if elements may be zero or not (`nonzero`).

No negative number is right for a result such as a square (`signs`).

docs/decisions/0020-permitted-error-of-graphs.md and 0026-which-samples-of-a-graph.md derive and
measure this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.precision import RuleKind
from dmlconf.graphs.model import Node, Slot
from dmlconf.permitted.graphs.alternatives import alternatives
from dmlconf.permitted.graphs.bands import (
    OVERFLOWED,
    AllowanceOf,
    Band,
    band_of,
    bands_of,
    stored,
)
from dmlconf.permitted.graphs.choices import TRUTH_VALUES, index_choices, ranges_at_most
from dmlconf.permitted.graphs.decisions import (
    OUTCOMES,
    beyond_single_elements,
    next_in_doubt,
    with_outcome,
)
from dmlconf.permitted.graphs.jumps import elements_at_jumps, limits_of_remainders
from dmlconf.permitted.graphs.poles import beyond_poles, poles_of
from dmlconf.permitted.graphs.reach import open_elements
from dmlconf.permitted.graphs.samples import RANDOM_SAMPLES, fused_samples, samples, unrounded
from dmlconf.permitted.graphs.signs import never_negative
from dmlconf.permitted.graphs.steps import of_choices, steps_of
from dmlconf.permitted.numbers.rounding import anything_where, truncated
from dmlconf.precision.allowance import Interval, permitted_intervals
from dmlconf.precision.rules import undefined
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16

__all__ = ["WIDENING", "graph_candidates", "undefined_outputs"]

WIDENING: Final = 4.0
"""How many root mean square errors of the random samples are permitted where many errors add up.
Their sum is nearly normal, and exceeds 4 standard deviations once in 16,000 elements."""

_LEAST_WIDENING: Final = 1.25
"""How many root mean square errors are permitted for a single error."""

_FULLY_APART: Final = 2.3
"""`WIDENING` applies in full if the greatest random error is this many root mean squares or more.
"""

_CONTINUOUS: Final = frozenset(
    {
        "ACTIVATION_LINEAR",
        "ELEMENT_WISE_ADD",
        "ELEMENT_WISE_COSH",
        "ELEMENT_WISE_DIFFERENCE_SQUARE",
        "ELEMENT_WISE_EXP",
        "ELEMENT_WISE_MULTIPLY",
        "ELEMENT_WISE_SINH",
        "ELEMENT_WISE_SUBTRACT",
    }
)
"""Operators whose results grow to infinity through all finite numbers."""

_FUSED_DEVIATIONS: Final = 3.0
"""How many standard deviations a right output may be from the mean of the samples in which some
edges keep FLOAT32. Errors that are nearly normal exceed 3 once in 370 elements."""


@np.errstate(all="ignore")
def graph_candidates(
    case: Case, evaluate: Evaluate, allowance_of: AllowanceOf
) -> dict[str, Sequence[Interval]]:
    """Return, for each graph output, intervals; each right element lies in at least one of them.

    Args:
        case: a graph that breaks no constraint.
        evaluate: computes what the reference gives for a node.
        allowance_of: returns what the rule of a node's output permits.
    """
    right = evaluate_nodes(case, evaluate)
    candidates = _candidates(case, evaluate, allowance_of, right)
    for other in alternatives(case, evaluate, allowance_of, right):
        values = evaluate_nodes(case, other.evaluate)
        further = _candidates(case, other.evaluate, other.allowance_of, values)
        for output, intervals in candidates.items():
            intervals += further[output]
    return {output: _distinct(intervals) for output, intervals in candidates.items()}


def undefined_outputs(
    case: Case, evaluate: Evaluate, allowance_of: AllowanceOf
) -> dict[str, Array]:
    """Return, by graph output, which elements follow from intermediates that may be far off.

    These are elements that follow from those that `Band.beyond` marks, and results of bitwise
    operators on floating-point intermediates that may be off or NaN. Outputs without such elements
    are left out. The arguments are those of `graph_candidates`.
    """
    right = evaluate_nodes(case, evaluate)
    bands = _bands(right, allowance_of)
    reached = open_elements(case, evaluate, allowance_of, bands, right, (), {}, {}).reached
    sources = case.graph.output_sources().items()
    return {output: reached[slot] for output, slot in sources if slot in reached}


def _bands(right: NodeValues, allowance_of: AllowanceOf) -> dict[Slot, Band]:
    return {
        (name, tensor): band_of(node, tensor, right.outputs[name, tensor], allowance_of)
        for name, node in right.cases.items()
        for tensor in node.outputs()
    }


def _candidates(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    right: NodeValues,
    decided: Mapping[Slot, Array] = MappingProxyType({}),
) -> dict[str, list[Interval]]:
    """Return the candidates of the outputs for one way to evaluate the nodes.

    `decided` has the elements of comparisons whose outcome is in doubt, but given by `evaluate`.
    """
    bands = _bands(right, allowance_of)
    whole = unrounded(case, evaluate)
    sampled = list(samples(case, evaluate, allowance_of, bands, right, whole))
    moved = [right, *(sample.values for sample in sampled)]
    jumps = elements_at_jumps(bands, right, moved)
    in_doubt = next_in_doubt(jumps, right, decided)
    if in_doubt is not None:
        decided = {**decided, in_doubt: jumps[in_doubt]}
        return _decided_either_way(case, evaluate, allowance_of, right, decided)
    poles = poles_of(case, evaluate, allowance_of, bands, right, moved)
    fused = () if whole is None else fused_samples(whole, evaluate)
    jumps = {slot: mask for slot, mask in jumps.items() if slot not in decided}
    open_ = open_elements(
        case, evaluate, allowance_of, bands, right, sampled, poles.elements, jumps
    )
    beyond = beyond_single_elements(right, decided) if decided else set()
    if beyond:
        mixed = open_elements(case, evaluate, allowance_of, bands, right, (), {}, decided)
        open_ = open_.joined(mixed, beyond)
    limits = limits_of_remainders(bands, right, moved, jumps, {**open_.reached, **open_.read})
    indices = _indices(case)
    order = index_choices(bands, right, moved, open_.read)
    evaluations = _Evaluations(allowance_of, bands, [right, *poles.zeros, *moved[1:]], fused)
    unstored = {slot: values for slot, values in fused[0].items() if slot in bands} if fused else {}
    range_of = evaluations.range_of
    steps = steps_of(case, evaluate, allowance_of, bands, right, range_of, unstored)
    chosen = of_choices(case, evaluate, allowance_of, bands, right, order.arrays, unstored)
    candidates: dict[str, list[Interval]] = {}
    for output, slot in case.graph.output_sources().items():
        if slot not in bands:  # A constant is an output as it is.
            candidates[output] = [(right.outputs[slot], right.outputs[slot])]
            continue
        own = evaluations.own_bands(slot)
        separate = slot in indices or slot in order.arrays
        join = evaluations.each if separate else evaluations.hull
        node, tensor = right.cases[slot[0]], slot[1]
        alone = _of_operator(node, tensor, allowance_of)
        follows = not alone or evaluations.follows_from_others(slot)
        intervals = list(join(slot, own) if follows else alone)
        if slot in steps and slot not in indices:
            intervals = steps[slot].replacing_hull(intervals)
        intervals += beyond_poles(intervals[0], poles, slot)
        intervals += _infinities_and_nan(own)
        intervals += _nan_candidates(own)
        intervals += [(each, each) for each in order.arrays.get(slot, ())]
        intervals += [*chosen.get(slot, ()), *alone]
        anything = np.logical_or.reduce([band.open for band in own])
        if slot in limits:
            limited = np.isfinite(limits[slot]) & ~anything
            ends = -limits[slot], limits[slot]
            intervals = [_within(interval, limited, ends) for interval in intervals]
            anything = anything | (open_.reached[slot] & ~limited)
        else:
            further = order.open if slot in order.arrays else open_.reached
            anything = anything | further[slot] if slot in further else anything
        ranges = ranges_at_most(node, tensor) or _marks_of_one_hot(node, right, slot[0])
        if anything.any():
            intervals = _open_within(intervals, anything, ranges)
        if node.operator_name in TRUTH_VALUES:
            intervals = [(np.clip(low, 0, 1), np.clip(high, 0, 1)) for low, high in intervals]
        candidates[output] = intervals
    return candidates


def _of_operator(node: Case, tensor: str, allowance_of: AllowanceOf) -> Sequence[Interval]:
    """Return the candidates of a node as an operator alone; none if its rule is not `one of`."""
    rule = node.rule(tensor)
    if rule.kind is not RuleKind.ONE_OF:
        return ()
    sizes = node.outputs()[tensor].Sizes
    intervals = [
        (low.reshape(sizes), high.reshape(sizes))
        for low, high in permitted_intervals(rule.kind, allowance_of(node, tensor))
    ]
    if not rule.flushes or intervals[0][0].dtype.kind != "f":
        return intervals
    return [_with_zero_for_subnormals(*interval) for interval in intervals]


def _with_zero_for_subnormals(low: Array, high: Array) -> Interval:
    tiny = np.finfo(low.dtype).tiny
    small = (np.abs(low) < tiny) | (np.abs(high) < tiny)
    return np.where(small, np.minimum(low, 0), low), np.where(small, np.maximum(high, 0), high)


def _decided_either_way(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    right: NodeValues,
    decided: Mapping[Slot, Array],
) -> dict[str, list[Interval]]:
    """Return the candidates with either outcome of the comparison that was decided last."""
    comparison, mask = list(decided.items())[-1]
    candidates: dict[str, list[Interval]] = {}
    for outcome in OUTCOMES:
        other = with_outcome(evaluate, right.cases[comparison[0]], mask, outcome)
        values = evaluate_nodes(case, other)
        for output, intervals in _candidates(case, other, allowance_of, values, decided).items():
            candidates.setdefault(output, []).extend(intervals)
    return candidates


@dataclass(frozen=True, slots=True)
class _Evaluations:
    """Evaluations of a graph, from which the ranges of its nodes' outputs follow.

    Attributes:
        bands: the band of each node output in the right evaluation.
        values: the outputs of the nodes in each evaluation: the right one, then `Poles.zeros`, then
            the samples, the random ones last.
        fused: the outputs of the nodes if all FLOAT16 edges keep FLOAT32, and then if some do;
            empty if no node stores FLOAT16.
    """

    allowance_of: AllowanceOf
    bands: Mapping[Slot, Band]
    values: Sequence[NodeValues]
    fused: Sequence[Mapping[Slot, Array]]

    def own_bands(self, slot: Slot) -> list[Band]:
        """Return the band of an output in each evaluation, the right evaluation first."""
        own = _sample_bands(self.values, slot, self.bands[slot], self.allowance_of)
        cases = [each.cases[slot[0]] for each in self.values]
        return list(_from_the_largest(own, cases)) if cases[0].operator_name in _CONTINUOUS else own

    def each(self, slot: Slot, own: Sequence[Band]) -> Sequence[Interval]:
        """Return the interval of each evaluation's band, and each fused result."""
        return _each(own, self._fused_values(slot))

    def hull(self, slot: Slot, own: Sequence[Band]) -> Sequence[Interval]:
        """Return the hull of all evaluations' bands, then the infinities and NaN that occur."""
        return _hull(own, self._fused_values(slot), never_negative(slot, self.values[0]))

    def range_of(self, slot: Slot) -> Interval:
        """Return the least and the greatest number that the next node may read."""
        low, high = self.hull(slot, self.own_bands(slot))[0]
        # A fused kernel reads the number before it is stored.
        unstored = _fused_ends(self._fused_values(slot), self.bands[slot])
        return np.fmin.reduce([low, *unstored]), np.fmax.reduce([high, *unstored])

    def follows_from_others(self, slot: Slot) -> bool:
        """Return whether errors of other nodes or fused kernels may change an output."""
        right = self.bands[slot].right
        if any(each.outputs[slot] is not right for each in self.values):
            return True
        is_float = right.dtype.kind == "f"
        stores = (stored(values, right) for values in self._fused_values(slot))
        return not all(np.array_equal(each, right, equal_nan=is_float) for each in stores)

    def _fused_values(self, slot: Slot) -> list[Array]:
        return [values[slot] for values in self.fused]


def _infinities_and_nan(bands: Sequence[Band]) -> Iterator[Interval]:
    """Yield NaN and infinities where a sum in the last node may overflow to them.

    In FLOAT16, also yield 65504 and -65504, which a store toward zero gives instead of infinities.
    """
    overflows = [band.overflows for band in bands if band.overflows is not None]
    if not overflows:
        return
    right = bands[0].right
    for special, *masks in zip(OVERFLOWED, *overflows, strict=True):
        where = np.logical_or.reduce(masks)
        values = [special]
        if right.dtype == np.float16 and not math.isnan(special):
            values.append(math.copysign(LARGEST_FLOAT16, special))
        for each in values:
            value = np.where(where, right.dtype.type(each), right)
            yield value, value


def _nan_candidates(bands: Sequence[Band]) -> Iterator[Interval]:
    where = [band.nan for band in bands if band.nan is not None]
    if where:
        right = bands[0].right
        value = np.where(np.logical_or.reduce(where), right.dtype.type(np.nan), right)
        yield value, value


def _with_open(interval: Interval, reached: Array) -> Interval:
    dtype = interval[0].dtype
    if dtype.kind == "f":
        return anything_where(reached, interval)
    limits = np.iinfo(dtype)
    return _within(interval, reached, (limits.min, limits.max))


def _open_within(
    intervals: Sequence[Interval], reached: Array, ranges: Sequence[tuple[Any, Any]]
) -> list[Interval]:
    if not ranges:
        return [_with_open(interval, reached) for interval in intervals]
    return [_within(interval, reached, ends) for interval in intervals for ends in ranges]


def _within(interval: Interval, reached: Array, ends: tuple[Any, Any]) -> Interval:
    low, high = (
        np.where(reached, end, old).astype(old.dtype)
        for end, old in zip(ends, interval, strict=True)
    )
    return low, high


def _marks_of_one_hot(node: Case, right: NodeValues, name: str) -> Sequence[tuple[Any, Any]]:
    """Return both values of ONE_HOT with their ends; none if they are computed by other nodes.

    Whatever the indices are, each element is one of the values.
    """
    if node.operator_name != "ONE_HOT":
        return ()
    source = right.sources[name, "ValuesTensor"]
    if not isinstance(source, str) and source[0] in right.cases:
        return ()
    return [(value, value) for value in node.inputs()["ValuesTensor"].ravel()[:2]]


def _sample_bands(
    samples: Sequence[NodeValues], slot: Slot, right: Band, allowance_of: AllowanceOf
) -> list[Band]:
    """Return the bands that the last node's rule permits around its result in each sample."""
    name, tensor = slot
    moved = [sample for sample in samples if sample.outputs[slot] is not right.right]
    cases, values = [each.cases[name] for each in moved], [each.outputs[slot] for each in moved]
    others = iter(bands_of(cases, tensor, values, allowance_of))
    return [right if each.outputs[slot] is right.right else next(others) for each in samples]


def _indices(case: Case) -> set[Slot]:
    """Return the outputs of nodes that hold indices, or integers computed from indices.

    Source: the names of the fields, and the pages of the operators in `_GIVE_INDICES`.
    """
    slots: set[Slot] = set()
    sources = case.graph.sources()
    for node in case.graph.in_order():
        if not isinstance(node, Node):
            continue
        fed = any(sources.get((node.name, name)) in slots for name in node.inputs)
        for name, tensor in node.outputs.items():
            own = "Ind" in name or _gives_indices(node)
            if not tensor.DataType.is_float and (own or fed):
                slots.add((node.name, name))
    return slots


def _gives_indices(node: Node) -> bool:
    function = node.desc["Function"] if node.operator_name == "REDUCE" else node.operator_name
    return function in _GIVE_INDICES


_GIVE_INDICES: Final = frozenset({"ARGMAX", "ARGMIN", "NONZERO_COORDINATES"})


def _each(bands: Sequence[Band], fused: Sequence[Array]) -> Sequence[Interval]:
    others = [(values, values) for values in fused]
    ends = [(stored(r.lowest, r.right), stored(r.highest, r.right)) for r in bands]
    return _distinct([*ends, *others])


def _distinct(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the intervals without those that repeat the bits of an earlier one."""
    distinct = {(low.dtype, low.tobytes(), high.tobytes()): (low, high) for low, high in intervals}
    return list(distinct.values())


def _hull(
    bands: Sequence[Band], fused: Sequence[Array], nonnegative: Array | None
) -> Sequence[Interval]:
    """Return the hull of the samples, widened, and intervals for the infinities and NaN that occur.

    `bands` has the right band first, and the bands of the random samples last.
    """
    band = bands[0]
    right = band.right.astype(np.float64)
    with np.errstate(all="ignore"):
        ends = [end.astype(np.float64) for each in bands for end in (each.lowest, each.highest)]
        ends += [end for each in bands for end in _below_infinity(each)]
        ends += [right, *(end.astype(np.float64) for end in band.finite_ends)]
        for values in _fused_ends(fused, band):
            ends += _around_unrounded(values, band)
        bounds = np.stack(ends)
        by_chance = [each.right.astype(np.float64) - right for each in bands[-RANDOM_SAMPLES:]]
        widening = _widening(np.stack(by_chance))
        own = np.stack([band.lowest - widening, band.highest + widening])
        if nonnegative is not None:
            bounds, own = (np.where(nonnegative & (e < 0), 0.0, e) for e in (bounds, own))
        low = np.minimum(_least(bounds), _least(own))
        high = np.maximum(_greatest(bounds), _greatest(own))
    nothing = ~np.isfinite(bounds).any(axis=0)
    low = np.where(nothing, right, np.where(np.isnan(low), right, low))
    high = np.where(nothing, right, np.where(np.isnan(high), right, high))
    open_elements = undefined(band.lowest, band.highest)
    hull = (np.where(open_elements, band.lowest, low), np.where(open_elements, band.highest, high))
    intervals = [_outward(*hull, band.right)]
    if band.right.dtype.kind == "f":
        largest = float(np.finfo(band.right.dtype).max)
        beyond = {-np.inf: hull[0] < -largest, np.inf: hull[1] > largest}
        for special in (np.nan, np.inf, -np.inf):
            present = np.isnan(bounds) if np.isnan(special) else bounds == special
            # A number beyond the data type is stored as an infinity.
            where = (present.any(axis=0) | beyond.get(special, False)) & ~open_elements
            if where.any():
                low, high = (
                    np.where(where, special, end).astype(end.dtype) for end in intervals[0]
                )
                intervals.append((low, high))
    return intervals


def _below_infinity(band: Band) -> Iterator[Array]:
    """Yield the largest finite number, M, where a band reaches from more than M / 2 to infinity.

    A store toward zero may give M. Where a band does not reach so, the yielded array repeats one of
    its ends.
    """
    if band.right.dtype.kind != "f":
        return
    if np.isfinite(band.lowest).all() and np.isfinite(band.highest).all():
        return
    largest = float(np.finfo(band.right.dtype).max)
    for infinite, finite in ((band.lowest, band.highest), (band.highest, band.lowest)):
        near = np.isfinite(finite) & (np.abs(finite, dtype=np.float64) > largest / 2)
        near &= np.isinf(infinite) & (np.sign(infinite) == np.sign(finite))
        if near.any():
            yield np.where(near, np.copysign(largest, infinite), finite.astype(np.float64))


def _from_the_largest(bands: Sequence[Band], cases: Sequence[Case]) -> Iterator[Band]:
    """Yield the bands, extended to the largest number where some but not all samples are infinite.

    The band of a sample with an infinity or NaN in the node's inputs stays as it is.
    """
    finite = np.logical_or.reduce([np.isfinite(band.right) for band in bands])
    for band, case in zip(bands, cases, strict=True):
        beyond = np.isinf(band.right) & finite
        if beyond.any() and all(np.isfinite(each).all() for each in case.inputs().values()):
            largest = np.copysign(float(np.finfo(band.right.dtype).max), band.right)
            low, high = np.fmin(band.lowest, largest), np.fmax(band.highest, largest)
            lowest, highest = (
                np.where(beyond, new, old)
                for new, old in ((low, band.lowest), (high, band.highest))
            )
            yield replace(band, lowest=lowest, highest=highest)
        else:
            yield band


def _widening(deviations: Array) -> Array:
    """Return how far errors that add up may move elements, from the errors of random samples."""
    sizes = np.abs(deviations)
    deviation = np.sqrt(np.mean(np.square(sizes), axis=0))
    deviation = np.where(np.isfinite(deviation), deviation, 0.0)
    # A single error has the same size in all random samples; with more errors, sizes differ more.
    moved = deviation > 0
    greatest = np.divide(sizes.max(axis=0), deviation, out=np.ones_like(deviation), where=moved)
    share = np.clip((greatest - 1) / (_FULLY_APART - 1), 0.0, 1.0)
    factor = _LEAST_WIDENING + (WIDENING - _LEAST_WIDENING) * share
    widening: Array = factor * deviation
    return widening


def _least(bounds: Array) -> Array:
    least: Array = np.where(np.isfinite(bounds), bounds, np.inf).min(axis=0)
    return least


def _greatest(bounds: Array) -> Array:
    greatest: Array = np.where(np.isfinite(bounds), bounds, -np.inf).max(axis=0)
    return greatest


def _fused_ends(fused: Sequence[Array], band: Band) -> Sequence[Array]:
    """Return results of fused kernels before they are stored.

    The first keeps FLOAT32 on all edges. For a floating-point output, two bounds follow, for
    kernels that keep FLOAT32 on some edges.
    """
    if not fused or band.right.dtype.kind != "f":
        return fused
    everywhere, *partly = fused
    values = np.stack(partly).astype(np.float64)
    mean, reach = values.mean(axis=0), _FUSED_DEVIATIONS * values.std(axis=0)
    return everywhere, mean - reach, mean + reach


def _around_unrounded(exact: Array, band: Band) -> list[Array]:
    """Return a fused result, rounded to nearest and truncated, each moved by the node's errors."""
    values = exact.astype(np.float64)
    if band.right.dtype.kind != "f":
        return [values]
    stores = exact.astype(band.right.dtype), truncated(values, band.right.dtype)
    right = band.right.astype(np.float64)
    below, above = band.lowest - right, band.highest - right
    below, above = (np.where(np.isfinite(part), part, 0.0) for part in (below, above))
    return [end + part for end in stores for part in (below, above)]


def _outward(low: Array, high: Array, like: Array) -> Interval:
    """Return the ends, for an integer output as integers of its type.

    Integers of 32 bits or fewer are rounded outward, those of 64 bits as in `stored`.
    """
    if like.dtype.kind != "f":
        limits = np.iinfo(like.dtype)
        if like.dtype.itemsize == 8:
            return stored(low, like), stored(high, like)
        return (
            np.clip(np.floor(low), limits.min, limits.max).astype(like.dtype),
            np.clip(np.ceil(high), limits.min, limits.max).astype(like.dtype),
        )
    return low, high
