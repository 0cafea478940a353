"""Elements of a graph near a pole: an intermediate may lie on both sides of zero.

The reciprocal of a number between -0.001 and 0.002 is below -1000 or above 500. Samples of such an
intermediate are finite, and do not show that its reciprocal may be infinite. So the graph is also
evaluated with zeros of both signs in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Node, Slot
from dmlconf.permitted.graphs.bands import Band, stored
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["Poles", "beyond_poles", "poles_of"]

_BESIDE_ZERO: Final = frozenset({"ELEMENT_WISE_CONSTANT_POW", "ELEMENT_WISE_POW"})
"""Operators that have a pole beside zero: 1e-30 to the power of -2 is infinite, and 0 to any power
is 0, as measured."""


@dataclass(frozen=True, slots=True)
class Poles:
    """The results of a graph whose intermediates may lie on both sides of zero.

    Attributes:
        zeros: what the nodes compute if such intermediates are +0 or -0 and, if an operator has its
            pole beside zero, the numbers next to 0; empty if there are no such intermediates.
        elements: by output of a node, where a result in `zeros` is infinite, and a result from an
            end of the intermediates' ranges is finite.
    """

    zeros: Sequence[NodeValues] = ()
    elements: Mapping[Slot, Array] = field(default_factory=dict)


def poles_of(
    case: Case,
    evaluate: Evaluate,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    moved: Sequence[NodeValues],
) -> Poles:
    """Return the poles of a graph: results of intermediates that may be +0 as well as -0."""
    fed = {(link.from_node, link.from_tensor) for link in case.graph.intermediate_edges}
    ranges = {slot: _range(slot, bands[slot], moved) for slot in bands if slot in fed}
    across = {slot: (low < high) & (low <= 0) & (high >= 0) for slot, (low, high) in ranges.items()}
    across = {
        slot: mask & ~bands[slot].open
        for slot, mask in across.items()
        if mask.any() and bands[slot].right.dtype.kind == "f"
    }
    if not across:
        return Poles()

    def evaluated(replacements: Mapping[Slot, Array]) -> NodeValues:
        def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
            mask = across.get((node.name, tensor))
            if mask is None:
                return values
            return np.where(mask, replacements[node.name, tensor], values).astype(values.dtype)

        return evaluate_nodes(case, evaluate, store=store, known=right)

    zeros = [
        evaluated({slot: np.full(mask.shape, zero) for slot, mask in across.items()})
        for zero in (0.0, -0.0)
    ]
    if _BESIDE_ZERO & set(case.graph.operators):
        zeros += [
            evaluated({slot: _beside_zero(ranges[slot], bands[slot].right, end) for slot in across})
            for end in (1.0, -1.0)
        ]
    ends = [
        evaluated({slot: stored(ranges[slot][end], bands[slot].right) for slot in across})
        for end in (0, 1)
    ]
    elements: dict[Slot, Array] = {}
    for slot, values in right.outputs.items():
        if values.dtype.kind != "f":
            continue
        infinite = np.logical_or.reduce([np.isinf(each.outputs[slot]) for each in zeros])
        finite = np.logical_or.reduce([np.isfinite(each.outputs[slot]) for each in ends])
        if (infinite & finite).any():
            elements[slot] = infinite & finite
    return Poles(zeros, elements)


def _beside_zero(interval: Interval, like: Array, end: float) -> Array:
    """Return the numbers next to zero in a data type, toward 1 or -1, limited to a range."""
    beside = np.nextafter(np.zeros_like(like), like.dtype.type(end))
    clipped: Array = np.clip(beside, *interval).astype(like.dtype)
    return clipped


def _range(slot: Slot, band: Band, moved: Sequence[NodeValues]) -> Interval:
    """Return the least and the greatest value of an intermediate in all samples and in its band."""
    values = [each.outputs[slot] for each in moved]
    return np.fmin.reduce([*values, band.lowest]), np.fmax.reduce([*values, band.highest])


def beyond_poles(hull: Interval, poles: Poles, slot: Slot) -> list[Interval]:
    """Return the intervals of an output near a pole: from the hull to each infinity that occurs."""
    mask = poles.elements.get(slot)
    if mask is None:
        return []
    low, high = (end.astype(np.float64) for end in hull)
    # Each side is an interval of its own: the whole data type would permit NaN as well.
    below = mask & np.logical_or.reduce([each.outputs[slot] == -np.inf for each in poles.zeros])
    above = mask & np.logical_or.reduce([each.outputs[slot] == np.inf for each in poles.zeros])
    return [
        (np.where(below, -np.inf, low), np.where(below & np.isposinf(high), 0.0, high)),
        (np.where(above & np.isneginf(low), 0.0, low), np.where(above, np.inf, high)),
    ]
