"""Permitted errors of RNN, and the values that its kernels store in FLOAT16."""

from __future__ import annotations

from typing import Final

from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.recurrent.kernels import Sites
from dmlconf.permitted.recurrent.layers import error_scales
from dmlconf.reference.fields import of_fields
from dmlconf.reference.recurrent.rnn import RnnDesc, rnn_direction

__all__ = [
    "rnn_error_scale",
]

_BIAS_ADDED_TO_SUM: Final[Sites] = frozenset({"bias", "sum with bias", "product", "state"})
"""The values that DirectML 1.15.4 stores in FLOAT16 if there is one input: the sum of both biases,
the input's products plus that sum, the products with the state, and hidden nodes.

Measured: a simulation that stores these gives all 210 elements of two random cases with one input,
bit by bit."""

_HELD: Final[Sites] = _BIAS_ADDED_TO_SUM | {"sum"}
"""The values that DirectML stores if there are more inputs: those above, and the input's products
alone."""


@of_fields(RnnDesc)
def rnn_error_scale(desc: RnnDesc) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `rnn`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    return error_scales(desc, rnn_direction, (_HELD, _BIAS_ADDED_TO_SUM), biases=2)
