"""Find elements of a graph that are open because they follow from an open element.

A rule may permit any value for an element of an intermediate, for instance if a sum overflows. Then
the elements that later nodes compute from it are open too. To find them, the graph is evaluated
with extreme and with random values in the open elements. Every element that then differs is open.
Open indices, such as those of ARGMAX, also get each value of their range, and mixtures of the least
and the greatest one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Node, Slot
from dmlconf.permitted.graphs.bands import AllowanceOf, Band, band_of
from dmlconf.permitted.graphs.choices import order_of, ranges_at_most
from dmlconf.permitted.graphs.decisions import COMPARISON
from dmlconf.permitted.graphs.samples import Sample
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["Open", "open_elements"]

_VALUES: Final = (np.nan, np.inf, -np.inf, 0.0, 1024.0, -1024.0)
"""Values that are tried in open elements."""

_MORE: Final = 2
"""The number of further evaluations, with random numbers."""

_MOST_ELEMENTS: Final = 1 << 23
"""The most elements of all outputs, summed over the evaluations that try values of an open index.
"""

_FEW_INDICES: Final = 64
"""This many values of an open index may be tried however many elements the outputs have."""

_MIXED_INDICES: Final = (0.5, 0.5, 0.0, 0.0, 1.0, 1.0, 0.25, 0.75)
"""By evaluation, the share of open indices that are the greatest of their range; the others are the
least. Of two or more, at least one is the greatest, and one the least."""

_MANY: Final = 4
"""An element that a comparison reads, and that has this many different values in the evaluations,
may have any value."""

_LEAVE_UNDEFINED: Final = frozenset({"NONZERO_COORDINATES"})
"""Operators for which the values of the input decide which output elements are undefined."""

_BITS: Final = frozenset(
    {
        "ELEMENT_WISE_BIT_AND",
        "ELEMENT_WISE_BIT_COUNT",
        "ELEMENT_WISE_BIT_NOT",
        "ELEMENT_WISE_BIT_OR",
        "ELEMENT_WISE_BIT_XOR",
    }
)
"""Operators whose results may differ much for nearly equal inputs."""


@dataclass(frozen=True, slots=True)
class Open:
    """The open elements by output of a node; outputs without open elements are left out.

    Attributes:
        reached: the elements for which any value is right, by their own rule or behind open ones.
        read: these, and others that later nodes may read as any value, such as those near a pole.
    """

    reached: Mapping[Slot, Array]
    read: Mapping[Slot, Array]

    def joined(self, other: Open, outputs: Collection[Slot]) -> Open:
        """Return the union of two results; the other's `reached` counts only for `outputs`."""
        reached = {slot: mask for slot, mask in other.reached.items() if slot in outputs}
        return Open(_either(self.reached, reached), _either(self.read, other.read))


def open_elements(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    sampled: Sequence[Sample],
    poles: Mapping[Slot, Array],
    jumps: Mapping[Slot, Array],
) -> Open:
    """Return the open elements of the outputs of nodes.

    These are

    - elements at a jump, and results of bitwise operators on uncertain floating-point numbers;
    - of outputs that later nodes read, elements near a pole, and those that `Band.beyond` marks in
      the right evaluation or in a sample;
    - all elements that follow from these.

    Args:
        poles: elements of outputs near a pole, which later nodes may read as any value.
        jumps: elements of outputs at jumps, for which any value is right.
    """
    reached = {**jumps, **_of_unknown_bits(bands, right, [sample.values for sample in sampled])}
    beyond = {slot: band.beyond for slot, band in bands.items() if band.beyond is not None}
    fed = {(link.from_node, link.from_tensor) for link in case.graph.intermediate_edges}
    starts: dict[Slot, Array] = {}
    for masks in (beyond, reached, poles, *(sample.beyond for sample in sampled)):
        starts = _either(starts, {slot: mask for slot, mask in masks.items() if slot in fed})
    if not starts:
        return Open(reached, {})

    def replaced(number: int) -> NodeValues:
        def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
            mask = starts.get((node.name, tensor))
            if mask is None:
                return values
            further = number - len(_VALUES) - _MORE
            if further < 0:
                other: Array | None = _any_value(number, values)
            elif further < most:
                other = _index(own, tensor, further)
            else:
                other = _mixed_indices(own, tensor, mask, further - most)
            return values if other is None else np.where(mask, other, values)

        return evaluate_nodes(case, evaluate, store=store, earlier=right)

    most = _most_indices(right, starts)

    def reach() -> dict[Slot, Array]:
        """Find elements that differ; return comparisons of which an input may be any number."""
        mixed = len(_MIXED_INDICES) if most else 0
        compared: dict[tuple[str, str], list[Array]] = {}
        for evaluated in map(replaced, range(len(_VALUES) + _MORE + most + mixed)):
            for slot, values in evaluated.outputs.items():
                differing = _differing(values, right.outputs[slot])
                own = evaluated.cases.get(slot[0])
                if own is not None and own.operator_name in _LEAVE_UNDEFINED:
                    differing |= band_of(own, slot[1], values, allowance_of).open
                if own is not None and own.operator_name == COMPARISON:
                    for tensor, read in own.inputs().items():
                        compared.setdefault((slot[0], tensor), []).append(read)
                if differing.any():
                    reached[slot] = differing | reached[slot] if slot in reached else differing
        of_any: dict[Slot, Array] = {}
        for (name, _), inputs in compared.items():
            open_ = _distinct(inputs) >= _MANY
            if open_.any():
                of_any = _either(of_any, {(name, "OutputTensor"): open_})
        return of_any

    with np.errstate(all="ignore"):
        while True:
            chosen = reach()
            chosen = _either(chosen, _of_lines(right, _either(_either(starts, reached), chosen)))
            before = starts
            starts, reached = _either(starts, chosen), _either(reached, chosen)
            if _count(starts) == _count(before):
                break
            most = _most_indices(right, starts)
    return Open(reached, _either(reached, starts))


def _either(one: Mapping[Slot, Array], other: Mapping[Slot, Array]) -> dict[Slot, Array]:
    both = dict(one)
    for slot, mask in other.items():
        both[slot] = mask | both[slot] if slot in both else mask
    return both


def _count(masks: Mapping[Slot, Array]) -> int:
    return sum(int(mask.sum()) for mask in masks.values())


def _of_lines(right: NodeValues, reached: Mapping[Slot, Array]) -> dict[Slot, Array]:
    """Return the elements that are open because of open elements in their line.

    The elements of a line are compared with each other, as by ARGMAX or a softmax. With an open
    element they may be in any order, and the evaluations do not show all orders. The
    logarithm of a softmax may be any number if one element of its line is NaN.
    """
    chosen: dict[Slot, Array] = {}
    for name, case in right.cases.items():
        axes = _axes_of_lines(case)
        if axes is None:
            continue
        source = right.sources[name, "InputTensor"]
        mask = None if isinstance(source, str) else reached.get(source)
        if mask is None or mask.shape != case.desc["InputTensor"].Sizes:
            continue
        lines = np.asarray(mask.any(axes, keepdims=True))
        if lines.any():
            for tensor, output in case.outputs().items():
                chosen[name, tensor] = np.broadcast_to(lines, output.Sizes)
    return chosen


def _axes_of_lines(case: Case) -> tuple[int, ...] | None:
    """Return the axes that a line extends over; None if elements do not belong to lines."""
    if case.operator_name in ("ACTIVATION_LOG_SOFTMAX", "ACTIVATION_LOG_SOFTMAX1"):
        last = (case.desc["InputTensor"].DimensionCount - 1,)
        return tuple(sorted({*case.desc.get("Axes", last)}))
    order = order_of(case)
    return None if order is None else tuple(order.axes)


def _most_indices(right: NodeValues, starts: Mapping[Slot, Array]) -> int:
    """Return how many values are tried for open indices: 3 for indices in a line of 3 elements."""
    most = 0
    for (name, tensor), mask in starts.items():
        case = right.cases.get(name)
        if case is not None and mask.any():
            most = max([most, *(last + 1 for _, last in ranges_at_most(case, tensor))])
    elements = sum(values.size for values in right.outputs.values())
    return min(most, max(_FEW_INDICES, _MOST_ELEMENTS // max(elements, 1)))


def _index(case: Case, tensor: str, number: int) -> Array | None:
    """Return an index that elements of an output may be: `number`, or the last if that is less."""
    ranges = ranges_at_most(case, tensor)
    if not ranges:
        return None
    return np.asarray(
        min(number, max(last for _, last in ranges)), case.outputs()[tensor].DataType.dtype
    )


def _mixed_indices(case: Case, tensor: str, mask: Array, number: int) -> Array | None:
    """Return an index for each element of an output, the least or the greatest of its range."""
    ranges = ranges_at_most(case, tensor)
    if not ranges:
        return None
    generator = np.random.Generator(np.random.PCG64([number]))
    order = generator.permutation(np.flatnonzero(mask))
    greatest = round(_MIXED_INDICES[number] * order.size)
    greatest = min(max(greatest, 1), max(order.size - 1, 1))
    indices = np.full(mask.size, min(first for first, _ in ranges))
    indices[order[:greatest]] = max(last for _, last in ranges)
    return indices.reshape(mask.shape).astype(case.outputs()[tensor].DataType.dtype)


def _any_value(number: int, like: Array) -> Array:
    """Return what replaces open elements in the evaluation with this number, in a data type.

    First come `_VALUES`, or some integers, then random numbers.
    """
    generator = np.random.Generator(np.random.PCG64([number]))
    if like.dtype.kind == "f":
        if number < len(_VALUES):
            return np.asarray(_VALUES[number], like.dtype)
        return np.asarray(generator.normal(0, 8, like.shape), like.dtype)
    limits = np.iinfo(like.dtype)
    values = (0, limits.max, limits.min, 1, 2, limits.max // 3)
    if number < len(values):
        return np.asarray(values[number], like.dtype)
    return np.frombuffer(generator.bytes(like.nbytes), like.dtype).reshape(like.shape)


def _of_unknown_bits(
    bands: Mapping[Slot, Band], right: NodeValues, moved: Sequence[NodeValues]
) -> dict[Slot, Array]:
    """Return the elements of bitwise operators whose floating-point inputs may be off or NaN."""
    unknown: dict[Slot, Array] = {}
    for name, case in right.cases.items():
        if case.operator_name not in _BITS:
            continue
        for tensor, values in case.inputs().items():
            source = right.sources[name, tensor]
            if values.dtype.kind != "f" or isinstance(source, str) or source not in bands:
                continue
            others = [sample.cases[name].inputs()[tensor] for sample in moved]
            if bands[source].right.shape == values.shape:
                others += [bands[source].lowest, bands[source].highest]
            mask = np.logical_or.reduce(
                [np.isnan(values), *(_differing(o, values) for o in others)]
            )
            if mask.any():
                slot = name, "OutputTensor"
                unknown[slot] = mask | unknown[slot] if slot in unknown else mask
    return unknown


def _distinct(arrays: Sequence[Array]) -> Array:
    """Return how many different values each element has in some arrays; no NaN equals another."""
    ordered = np.sort(np.stack(arrays), axis=0)
    count: Array = 1 + (ordered[1:] != ordered[:-1]).sum(0)
    return count


def _differing(values: Array, expected: Array) -> Array:
    differing: Array = values != expected
    if expected.dtype.kind == "f":
        differing &= ~(np.isnan(values) & np.isnan(expected))
    return differing
