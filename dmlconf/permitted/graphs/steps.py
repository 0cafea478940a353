"""Elements of a graph at steps: operators such as FLOOR round uncertain numbers to whole ones.

If a quotient is 1 with an error of 2^-23, its FLOOR is 0 or 1, and nothing between or beyond. So
FLOOR is applied to both ends of the quotient's range, and each whole number between the results is
a candidate. A later node may depend on this number alone: 3 * FLOOR is 0 or 3. `of_choices` finds
what follows from other right values than the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.model import FieldKind
from dmlconf.catalogue.precision import RuleKind
from dmlconf.graphs.model import Node, Slot
from dmlconf.permitted.graphs.bands import AllowanceOf, Band, band_of, is_one_to_one, stored
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["StepCandidates", "of_choices", "steps_of"]

_STEPS: Final = frozenset(
    {
        "CAST",
        "ELEMENT_WISE_CEIL",
        "ELEMENT_WISE_FLOOR",
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        "ELEMENT_WISE_ROUND",
        "ELEMENT_WISE_SIGN",
        "QUANTIZE",
    }
)
"""Operators, here called steps, whose results are whole numbers and only rise, or only fall, with
`InputTensor`."""

_MOVE_ELEMENTS: Final = frozenset(
    {
        "DEPTH_TO_SPACE",
        "DEPTH_TO_SPACE1",
        "GATHER",
        "GATHER_ELEMENTS",
        "JOIN",
        "PADDING",
        "PADDING1",
        "REVERSE_SUBSEQUENCES",
        "SLICE",
        "SLICE1",
        "SPACE_TO_DEPTH",
        "SPACE_TO_DEPTH1",
        "SPLIT",
        "TILE",
    }
)
"""Operators that only move elements: each output element is an input element, or a constant."""

_MOST: Final = 8
"""The most whole numbers of an element that are tried."""

_MOST_ELEMENTS: Final = 1 << 22
"""Other right values of an output are not tried if their arrays have more elements than this."""


@dataclass(frozen=True, slots=True)
class StepCandidates:
    """The permitted results that follow from the whole numbers that steps may return.

    Attributes:
        elements: the elements for which the candidates contain every right value.
        candidates: intervals; each right value of `elements` lies in one of them.
    """

    elements: Array
    candidates: Sequence[Interval]

    def replacing_hull(self, intervals: Sequence[Interval]) -> list[Interval]:
        """Return intervals with the candidates in place of the first one, the hull.

        Elements of other intervals that equal the hull become those of the first candidate.
        """
        hull, *others = intervals
        first, *_ = narrowed = [self._or_hull(each, hull) for each in self.candidates]
        for other in others:
            same = _equal(other[0], hull[0]) & _equal(other[1], hull[1])
            low, high = (np.where(same, f, o) for f, o in zip(first, other, strict=True))
            narrowed.append((low, high))
        return narrowed

    def _or_hull(self, candidate: Interval, hull: Interval) -> Interval:
        low, high = (
            np.where(self.elements, stored(new, old), old)
            for new, old in zip(candidate, hull, strict=True)
        )
        return low, high


def steps_of(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    range_of: Callable[[Slot], Interval],
    unstored: Mapping[Slot, Array],
) -> dict[Slot, StepCandidates]:
    """Return, by output, the permitted results that follow from the whole numbers of steps.

    Results of later nodes are included only if each element of every step has few numbers (`_few`).

    Args:
        range_of: gives the least and the greatest number that an output may be.
        unstored: the outputs if FLOAT16 edges keep FLOAT32; empty if no node stores FLOAT16.
    """
    uncertain = _uncertain(bands, right, unstored)
    steps = [slot for slot in bands if _is_step(slot, right, bands, uncertain)]
    if not steps:
        return {}
    ranges = {
        source: range_of(source)
        for name, _ in steps
        for source in _sources_among(name, right, uncertain)
    }
    ends = [_outputs_at(case, evaluate, allowance_of, right, ranges, steps, end) for end in (0, 1)]
    whole = {slot: _hull([each[slot] for each in ends]) for slot in steps}
    few = {slot: _few(*whole[slot], bands[slot].right) for slot in steps}
    numbers = {slot: _numbers(whole[slot], few[slot], bands[slot].right) for slot in steps}
    candidates = {
        slot: StepCandidates(few[slot], [(each, each) for each in numbers[slot]])
        for slot in steps
        if len(numbers[slot]) > 1
    }
    after = _element_wise_descendants(bands, right, uncertain, set(candidates))
    if not after or not all(mask.all() for mask in few.values()):
        return candidates
    follows = _of_each(case, evaluate, allowance_of, right, numbers, after)
    for slot, intervals in follows.items():
        candidates[slot] = StepCandidates(np.ones(bands[slot].right.shape, bool), intervals)
    return candidates


def of_choices(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    choices: Mapping[Slot, Sequence[Array]],
    unstored: Mapping[Slot, Array],
) -> dict[Slot, list[Interval]]:
    """Return, by later output, the permitted results that follow from `choices`.

    `choices` has other right values by output. For `unstored` see `steps_of`.
    """
    few = {
        slot: arrays
        for slot, arrays in choices.items()
        if 0 < sum(each.size for each in arrays) <= _MOST_ELEMENTS
    }
    if not few:
        return {}
    uncertain = _uncertain(bands, right, unstored)
    after = _element_wise_descendants(bands, right, uncertain, set(few))
    after += [s for s in _exact_descendants(bands, right, uncertain, set(few)) if s not in after]
    return _of_each(case, evaluate, allowance_of, right, few, after) if after else {}


def _of_each(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    right: NodeValues,
    numbers: Mapping[Slot, Sequence[Array]],
    after: Sequence[Slot],
) -> dict[Slot, list[Interval]]:
    intervals: dict[Slot, list[Interval]] = {slot: [] for slot in after}
    for choice in range(max(map(len, numbers.values()))):
        values = _evaluated(case, evaluate, right, numbers, choice)
        for slot, each in intervals.items():
            band = band_of(values.cases[slot[0]], slot[1], values.outputs[slot], allowance_of)
            each.append((stored(band.lowest, band.right), stored(band.highest, band.right)))
    return intervals


def _uncertain(
    bands: Mapping[Slot, Band], right: NodeValues, unstored: Mapping[Slot, Array]
) -> set[Slot]:
    """Return the outputs that may be off, by their own rule or since an input may be off."""
    uncertain: set[Slot] = set()
    for slot, band in bands.items():
        whole = unstored.get(slot, band.right)
        is_float = whole.dtype.kind == "f"
        off = not band.exact or not np.array_equal(whole, band.right, equal_nan=is_float)
        if off or _sources_among(slot[0], right, uncertain):
            uncertain.add(slot)
    return uncertain


def _sources_among(name: str, right: NodeValues, among: set[Slot]) -> set[Slot]:
    sources = (right.sources[name, tensor] for tensor in right.cases[name].inputs())
    return {source for source in sources if not isinstance(source, str) and source in among}


def _is_step(
    slot: Slot, right: NodeValues, bands: Mapping[Slot, Band], uncertain: set[Slot]
) -> bool:
    """Return whether a node computes whole numbers, and only its InputTensor is uncertain."""
    case = right.cases[slot[0]]
    if case.operator_name not in _STEPS:
        return False
    if case.operator_name == "CAST" and bands[slot].right.dtype.kind == "f":
        return False
    return _sources_among(slot[0], right, uncertain) == {right.sources[slot[0], "InputTensor"]}


def _outputs_at(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    right: NodeValues,
    ranges: Mapping[Slot, Interval],
    steps: Sequence[Slot],
    end: int,
) -> dict[Slot, Interval]:
    def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
        interval = ranges.get((node.name, tensor))
        return values if interval is None else _outward(interval[end], values, up=end == 1)

    evaluated = evaluate_nodes(case, evaluate, store=store, earlier=right)
    outputs: dict[Slot, Interval] = {}
    for name, tensor in steps:
        values = evaluated.outputs[name, tensor]
        band = band_of(evaluated.cases[name], tensor, values, allowance_of)
        outputs[name, tensor] = band.lowest, band.highest
    return outputs


def _outward(end: Array, like: Array, *, up: bool) -> Array:
    """Return one end of a range in a data type, rounded so that the range does not shrink."""
    rounded = stored(end, like)
    if like.dtype.kind != "f":
        return rounded
    shrunk = rounded < end if up else rounded > end
    beyond = np.nextafter(rounded, like.dtype.type(np.inf if up else -np.inf))
    return np.where(shrunk, beyond, rounded)


def _hull(intervals: Sequence[Interval]) -> Interval:
    ends = [end for interval in intervals for end in interval]
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def _few(low: Array, high: Array, right: Array) -> Array:
    """Return where a range has few whole numbers, and the data type holds all of them."""
    least, most = low.astype(np.float64), high.astype(np.float64)
    bits = np.finfo(right.dtype).nmant + 1 if right.dtype.kind == "f" else 53
    few: Array = (most - least < _MOST) & (np.maximum(np.abs(least), np.abs(most)) <= 2.0**bits)
    return few


def _numbers(whole: Interval, few: Array, right: Array) -> list[Array]:
    """Return arrays that together contain the whole numbers of each element's range.

    A range with fewer whole numbers than there are arrays repeats the greatest. One with too many
    has only the right number.
    """
    low, high = whole
    if not (few & (low < high)).any():
        return [right]
    most = int((high[few].astype(np.float64) - low[few].astype(np.float64)).max())
    numbers = (np.minimum(low.astype(np.float64) + more, high) for more in range(most + 1))
    return [stored(np.where(few, each, right), right) for each in numbers]


def _element_wise_descendants(
    bands: Mapping[Slot, Band],
    right: NodeValues,
    uncertain: set[Slot],
    starts: set[Slot],
) -> list[Slot]:
    """Return later outputs, each element of which follows from one element of one start output."""
    stepping = set(starts)
    after: list[Slot] = []
    for slot, band in bands.items():
        case = right.cases[slot[0]]
        read = _sources_among(slot[0], right, uncertain)
        if slot in starts or not (len(read) == 1 and read <= stepping):
            continue
        if not is_one_to_one(case.operator):
            continue
        if not _reads_alike(case, slot[0], right, read):
            continue
        after.append(slot)
        if band.exact and case.rule(slot[1]).kind is RuleKind.EXACT:
            stepping.add(slot)
    return after


def _reads_alike(case: Case, name: str, right: NodeValues, outputs: set[Slot]) -> bool:
    """Return whether a node reads these outputs by the same Sizes and Strides throughout.

    If B is the transpose of A, an element of A + B follows from two elements of one output.
    """
    tensors = tensors_of(case.entry, case.desc, FieldKind.INPUT)
    views = {
        (tensor.Sizes, None if tensor.Packed else tensor.Strides)
        for field, _, tensor in tensors
        if right.sources[name, field] in outputs
    }
    return len(views) == 1


def _exact_descendants(
    bands: Mapping[Slot, Band], right: NodeValues, uncertain: set[Slot], starts: set[Slot]
) -> list[Slot]:
    """Return the exact outputs that follow from one start output only."""
    roots = {slot: slot for slot in starts}
    for name, tensor in bands:
        case = right.cases[name]
        read = _sources_among(name, right, uncertain)
        from_one = read <= roots.keys() and len({roots[slot] for slot in read}) == 1
        moves = case.operator_name in _MOVE_ELEMENTS
        if (name, tensor) in starts or not from_one:
            continue
        if (moves or is_one_to_one(case.operator)) and (case.rule(tensor).kind is RuleKind.EXACT):
            roots[name, tensor] = roots[next(iter(read))]
    return [slot for slot in roots if slot not in starts]


def _evaluated(
    case: Case,
    evaluate: Evaluate,
    right: NodeValues,
    numbers: Mapping[Slot, Sequence[Array]],
    choice: int,
) -> NodeValues:
    """Return the nodes' results if outputs in `numbers` have their array `choice`, or the last."""

    def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
        each = numbers.get((node.name, tensor))
        return values if each is None else each[min(choice, len(each) - 1)]

    return evaluate_nodes(case, evaluate, store=store, earlier=right)


def _equal(one: Array, other: Array) -> Array:
    equal: Array = (one == other) | (np.isnan(one) & np.isnan(other))
    return equal
