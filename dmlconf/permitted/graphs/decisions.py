"""Numbers in a graph that are equal within their errors: a device may decide either way.

If x may be 0.999 to 1.001 and y is 1, x == y may be true or false. Both values of an IF on x == y
are then right, and nothing between them. So the graph is evaluated with each combination of the
outcomes of up to three comparisons.

Behind element-wise operators, these results are candidates. Behind other operators, such as a sum
of several elements or a JOIN, elements are open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.graphs.model import Slot
from dmlconf.permitted.graphs.bands import is_one_to_one
from dmlconf.reference.graph_evaluation import Evaluate, NodeValues
from dmlconf.tensors.datatypes import Array

__all__ = ["COMPARISON", "OUTCOMES", "beyond_single_elements", "next_in_doubt", "with_outcome"]

OUTCOMES: Final = (0, 1)
"""What a comparison may give: false and true."""

COMPARISON: Final = "ELEMENT_WISE_LOGICAL_EQUALS"
"""The operator whose outcomes are decided."""

_MOST_COMPARISONS: Final = 3
"""The most comparisons that are decided. What follows from a fourth in doubt is open."""


def next_in_doubt(
    jumps: Mapping[Slot, Array], right: NodeValues, decided: Mapping[Slot, Array]
) -> Slot | None:
    """Return the first comparison with elements at a jump that is not yet decided.

    None if there is none, or if `_MOST_COMPARISONS` are decided.
    """
    if len(decided) >= _MOST_COMPARISONS:
        return None
    slots = (slot for slot in jumps if right.cases[slot[0]].operator_name == COMPARISON)
    return next((slot for slot in slots if slot not in decided), None)


def with_outcome(evaluate: Evaluate, comparison: Case, mask: Array, outcome: int) -> Evaluate:
    """Return an evaluation like `evaluate`, but with one outcome where `mask` says so."""

    def outputs(case: Case) -> Mapping[str, Array]:
        values = evaluate(case)
        if case.identifier != comparison.identifier:
            return values
        return {
            name: np.where(mask, each.dtype.type(outcome), each) for name, each in values.items()
        }

    return outputs


def beyond_single_elements(right: NodeValues, decided: Mapping[Slot, Array]) -> set[Slot]:
    """Return the outputs whose elements may each follow from several elements of comparisons."""
    beyond: set[Slot] = set()
    # By output whose elements each follow from one element of a comparison: is its index the same?
    following = {slot: _tensor(right, slot).Packed for slot in decided}
    for name, case in right.cases.items():
        reads = {
            tensor: source
            for tensor in case.inputs()
            if not isinstance(source := right.sources[name, tensor], str)
            and (source in following or source in beyond)
        }
        slots = [(name, tensor) for tensor in case.outputs()]
        if not reads or any(slot in decided for slot in slots):
            continue
        tensors = {field: tensor for field, _, tensor in tensors_of(case.entry, case.desc)}
        in_place = all(tensors[field].Packed for field in [*reads, *case.outputs()])
        in_place &= all(following.get(source, False) for source in reads.values())
        alone = is_one_to_one(case.operator) and not beyond & set(reads.values())
        if alone and (len(reads) == 1 or in_place):
            following |= dict.fromkeys(slots, in_place)
        else:
            beyond |= set(slots)
    return beyond


def _tensor(right: NodeValues, slot: Slot) -> TensorDesc:
    name, tensor = slot
    return right.cases[name].outputs()[tensor]
