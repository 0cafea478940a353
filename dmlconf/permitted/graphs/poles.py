"""Elements of a graph near a pole, or near an end of a function's domain.

The reciprocal of a number from -0.001 to 0.002 is at most -1000 or at least 500. Samples of such an
intermediate are rarely 0, and do not show that its reciprocal may be infinite. So the graph is also
evaluated with zeros of both signs in its place.

ACOS of a number from -5 to 6 is NaN, or any number from 0 to 3.1416, so the graph is also evaluated
with -1 and with 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Node, Slot
from dmlconf.permitted.graphs.bands import AllowanceOf, Band, band_of, stored
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues, evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["Poles", "beyond_poles", "poles_of"]

_BESIDE_ZERO: Final = frozenset({"ELEMENT_WISE_CONSTANT_POW", "ELEMENT_WISE_POW"})
"""Operators that have a pole next to zero. Measured: in FLOAT32, 1e-30 to the power of -2 is
infinite, and 0 to the power of -2 is 0."""

_ENDS: Final[Mapping[str, Sequence[float]]] = {
    "ELEMENT_WISE_ACOS": (-1.0, 1.0),
    "ELEMENT_WISE_ACOSH": (1.0,),
    "ELEMENT_WISE_ASIN": (-1.0, 1.0),
    "ELEMENT_WISE_ATANH": (-1.0, 1.0),
    "ELEMENT_WISE_CONSTANT_POW": (0.0,),
    "ELEMENT_WISE_LOG": (0.0,),
    "ELEMENT_WISE_RECIP": (0.0,),
    "ELEMENT_WISE_SQRT": (0.0,),
}
"""By operator, the scaled inputs that are poles or ends of the operator's domain."""


_Replaced = Mapping[Slot, tuple[Array, Array]]
"""By output of a node: which elements are replaced, and by what."""


@dataclass(frozen=True, slots=True)
class Poles:
    """The results of a graph whose intermediates may reach poles, or ends of a function's domain.

    Attributes:
        zeros: the nodes' results with intermediates replaced by +0, by -0, and by the numbers that
            ScaleBias turns into those in `_ENDS`; for a graph with an operator in `_BESIDE_ZERO`,
            also by the numbers next to 0. A number replaces only intermediates that may have it.
        elements: by output of a node, where a result in `zeros` is infinite, and a result from an
            end of the intermediates' ranges is finite.
    """

    zeros: Sequence[NodeValues] = ()
    elements: Mapping[Slot, Array] = field(default_factory=dict)


def poles_of(
    case: Case,
    evaluate: Evaluate,
    allowance_of: AllowanceOf,
    bands: Mapping[Slot, Band],
    right: NodeValues,
    moved: Sequence[NodeValues],
) -> Poles:
    """Return a graph's results at the poles and ends of domains that intermediates may reach.

    `moved` has the right evaluation and the samples.
    """
    fed = {(link.from_node, link.from_tensor) for link in case.graph.intermediate_edges}
    ranges = {
        slot: _range(slot, band, moved)
        for slot, band in bands.items()
        if slot in fed and band.right.dtype.kind == "f"
    }
    beside_zero = bool(_BESIDE_ZERO & set(case.graph.operators))

    def allows_anything(node: Case) -> bool:
        (values,) = evaluate(node).values()
        return bool(band_of(node, "OutputTensor", values, allowance_of).open.any())

    replacements = _at_zero(ranges, bands, neighbours=beside_zero)
    replacements += _at_ends(ranges, bands, right, allows_anything)
    if not replacements:
        return Poles()
    evaluated = partial(_evaluated, case, evaluate, right)
    concerned: dict[Slot, Array] = {}
    for replaced in replacements:
        for slot, (mask, _) in replaced.items():
            concerned[slot] = mask | concerned[slot] if slot in concerned else mask
    ends = [
        {
            slot: (mask, stored(ranges[slot][end], bands[slot].right))
            for slot, mask in concerned.items()
        }
        for end in (0, 1)
    ]
    zeros = list(map(evaluated, replacements))
    return Poles(zeros, _infinite_beside_finite(right, zeros, list(map(evaluated, ends))))


def _evaluated(
    case: Case, evaluate: Evaluate, right: NodeValues, replaced: _Replaced
) -> NodeValues:
    def store(node: Node, own: Case, tensor: str, values: Array) -> Array:
        if (node.name, tensor) not in replaced:
            return values
        mask, others = replaced[node.name, tensor]
        return np.where(mask, others, values).astype(values.dtype)

    return evaluate_nodes(case, evaluate, store=store, earlier=right)


def _infinite_beside_finite(
    right: NodeValues, zeros: Sequence[NodeValues], ends: Sequence[NodeValues]
) -> dict[Slot, Array]:
    """Return, by output, the elements infinite in one of `zeros` and finite in one of `ends`."""
    elements: dict[Slot, Array] = {}
    for slot, values in right.outputs.items():
        if values.dtype.kind != "f":
            continue
        infinite = np.logical_or.reduce([np.isinf(each.outputs[slot]) for each in zeros])
        finite = np.logical_or.reduce([np.isfinite(each.outputs[slot]) for each in ends])
        if (infinite & finite).any():
            elements[slot] = infinite & finite
    return elements


def _at_zero(
    ranges: Mapping[Slot, Interval], bands: Mapping[Slot, Band], *, neighbours: bool
) -> list[_Replaced]:
    """Return the replacements by +0, by -0 and, if `neighbours`, by the numbers next to 0."""
    across = {
        slot: mask
        for slot, interval in ranges.items()
        if (mask := _across(interval, bands[slot], 0.0)).any()
    }
    if not across:
        return []
    values: list[Mapping[Slot, Array]] = [
        {slot: np.full(mask.shape, zero) for slot, mask in across.items()} for zero in (0.0, -0.0)
    ]
    if neighbours:
        values += [
            {slot: _beside_zero(ranges[slot], bands[slot].right, end) for slot in across}
            for end in (1.0, -1.0)
        ]
    return [{slot: (across[slot], each) for slot, each in others.items()} for others in values]


def _at_ends(
    ranges: Mapping[Slot, Interval],
    bands: Mapping[Slot, Band],
    right: NodeValues,
    allows_anything: Callable[[Case], bool],
) -> list[_Replaced]:
    """Return the replacements by the numbers that ScaleBias turns into those in `_ENDS`.

    Left out are 0, which `_at_zero` tries, and numbers for which the rule permits any value.
    """
    replacements: list[_Replaced] = []
    for name, case in right.cases.items():
        source = right.sources[name, "InputTensor"] if case.operator_name in _ENDS else ""
        if isinstance(source, str) or source not in ranges:
            continue
        scale_bias, dtype = case.desc["ScaleBias"], bands[source].right.dtype
        scale, bias = (scale_bias["Scale"], scale_bias["Bias"]) if scale_bias else (1.0, 0.0)
        for end in _ENDS[case.operator_name]:
            at = dtype.type((end - bias) / scale) if scale else dtype.type(0)
            mask = _across(ranges[source], bands[source], float(at))
            if at == 0 or not mask.any():
                continue
            own = case.inputs()
            tried = case.with_data({**own, "InputTensor": np.full_like(own["InputTensor"], at)})
            if not allows_anything(tried):
                replacements.append({source: (mask, np.full(mask.shape, at))})
    return replacements


def _across(interval: Interval, band: Band, point: float) -> Array:
    """Return the elements whose range contains a point and other numbers, without open ones."""
    low, high = interval
    mask: Array = (low < high) & (low <= point) & (high >= point) & ~band.open
    return mask


def _beside_zero(interval: Interval, like: Array, end: float) -> Array:
    """Return the numbers next to zero in a data type, toward 1 or -1, limited to a range."""
    beside = np.nextafter(np.zeros_like(like), like.dtype.type(end))
    clipped: Array = np.clip(beside, *interval).astype(like.dtype)
    return clipped


def _range(slot: Slot, band: Band, moved: Sequence[NodeValues]) -> Interval:
    values = [each.outputs[slot] for each in moved]
    return np.fmin.reduce([*values, band.lowest]), np.fmax.reduce([*values, band.highest])


def beyond_poles(hull: Interval, poles: Poles, slot: Slot) -> list[Interval]:
    """Return two intervals of an output near a pole: the hull, extended to either infinity.

    Only elements that `Poles.elements` marks are extended, and only to infinities that they have in
    `Poles.zeros`. If the hull begins or ends at the other infinity, that end becomes 0. An output
    without marked elements has no intervals here.
    """
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
