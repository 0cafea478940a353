"""Outputs of a graph that are never negative, whatever the errors of the intermediates.

The square of a number between -0.001 and 0.002 lies between 0 and 4e-6. The interval of the samples
is widened to both sides, and would permit negative numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.graphs.model import Slot
from dmlconf.permitted.element_wise.power import is_even
from dmlconf.reference.element_wise.power import exponent_of, operand
from dmlconf.reference.graph_evaluation import NodeValues
from dmlconf.tensors.datatypes import Array

__all__ = ["never_negative"]

_ALWAYS: Final = frozenset(
    {
        "ACTIVATION_RELU",
        "ELEMENT_WISE_ABS",
        "ELEMENT_WISE_DIFFERENCE_SQUARE",
        "ELEMENT_WISE_EXP",
        "ELEMENT_WISE_SQRT",
    }
)
"""Operators whose results are never negative."""


def never_negative(slot: Slot, right: NodeValues) -> Array | None:
    """Return which elements of an output are never negative.

    These are all results of the operators in `_ALWAYS`, and powers with even exponents. Exponents
    of POW must be an input of the graph. None for integers and for other nodes.
    """
    case, values = right.cases[slot[0]], right.outputs[slot]
    if values.dtype.kind != "f":
        return None
    if case.operator_name in _ALWAYS:
        return np.ones(values.shape, bool)
    of_power = _OF_POWERS.get(case.operator_name)
    even = (
        None if of_power is None else of_power(case, right.sources.get((slot[0], "ExponentTensor")))
    )
    return None if even is None else np.broadcast_to(even, values.shape)


def _even_exponent(case: Case, source: Slot | str | None) -> Array | None:
    return is_even(exponent_of(case.desc["Exponent"]))


def _even_exponents(case: Case, source: Slot | str | None) -> Array | None:
    """Return which exponents are even; None if they are not an input of the graph."""
    if not isinstance(source, str):
        return None
    return is_even(operand(case.inputs()["ExponentTensor"], case.desc["ScaleBias"], real=True))


_OF_POWERS: Final[Mapping[str, Callable[[Case, Slot | str | None], Array | None]]] = {
    "ELEMENT_WISE_CONSTANT_POW": _even_exponent,
    "ELEMENT_WISE_POW": _even_exponents,
}
