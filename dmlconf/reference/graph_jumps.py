"""Elements of a graph at a jump: a remainder whose quotient may lie on both sides of an integer.

The remainder of 1000.1 by 1 is 0.1, and if the dividend is off by 0.2, it is between 0 and 0.3 or
between 0.9 and 1. Evaluations on moved intermediates show some of these numbers, but not the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Slot
from dmlconf.precision.allowance import Interval
from dmlconf.reference.graph_evaluation import NodeValues
from dmlconf.reference.graph_samples import Room
from dmlconf.tensors.datatypes import Array

__all__ = ["elements_at_jumps"]

_WHOLE: Final[Mapping[str, Callable[[Array], Array]]] = {
    "ELEMENT_WISE_MODULUS_FLOOR": np.floor,
    "ELEMENT_WISE_MODULUS_TRUNCATE": np.trunc,
}
"""Which part of the quotient is left out, by operator."""

_BEYOND: Final = 0.25
"""How far beyond the samples quotients may be, as a share of their range."""


def elements_at_jumps(
    rooms: Mapping[Slot, Room], right: NodeValues, moved: Sequence[NodeValues]
) -> dict[Slot, Array]:
    """Return which remainders may be any, by output of a node; those without are not there.

    Args:
        rooms: what is permitted of each output of a node.
        right: what the nodes compute.
        moved: what they compute from moved intermediates.
    """
    jumps: dict[Slot, Array] = {}
    for name, case in right.cases.items():
        whole = _WHOLE.get(case.operator_name)
        if whole is None or case.outputs()["OutputTensor"].DataType.dtype.kind != "f":
            continue
        dividend, divisor = (
            _range(case, name, tensor, rooms, right, moved) for tensor in ("ATensor", "BTensor")
        )
        quotients = [a.astype(np.float64) / b for a in dividend for b in divisor]
        low, high = np.fmin.reduce(quotients), np.fmax.reduce(quotients)
        reach = _BEYOND * (high - low)
        mask = (low < high) & (whole(low - reach) != whole(high + reach))
        # A divisor that may lie on both sides of zero has quotients of any size.
        mask |= (divisor[0] < divisor[1]) & (divisor[0] <= 0) & (divisor[1] >= 0)
        if mask.any():
            jumps[name, "OutputTensor"] = mask
    return jumps


def _range(
    case: Case,
    name: str,
    tensor: str,
    rooms: Mapping[Slot, Room],
    right: NodeValues,
    moved: Sequence[NodeValues],
) -> Interval:
    """Return the least and the greatest numbers that an input of a node was seen to be."""
    own = case.inputs()[tensor]
    values = [own, *(each.cases[name].inputs()[tensor] for each in moved)]
    source = right.sources[name, tensor]
    room = None if isinstance(source, str) else rooms.get(source)
    if room is not None and room.right.shape == own.shape:
        values += [room.lowest, room.highest]
    return np.fmin.reduce(values), np.fmax.reduce(values)
