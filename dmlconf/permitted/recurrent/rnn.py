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
"""The values that DirectML stores in FLOAT16 if there is one hidden node.

A step computes X W + (B_w + B_r) + H R, and stores B_w + B_r, X W + (B_w + B_r), H R and the hidden
nodes H. Measured on DirectML 1.8.2 and 1.15.4: a simulation that stores these values gives all 441
elements of 21 cases with 1 to 8 inputs."""

_HELD: Final[Sites] = _BIAS_ADDED_TO_SUM | {"sum"}
"""The values that DirectML stores if there are more hidden nodes: also the products X W alone.
Measured: the simulation gives all 2,646 elements of 42 cases with 2 or 4 hidden nodes."""


@of_fields(RnnDesc)
def rnn_error_scale(desc: RnnDesc) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `rnn`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    return error_scales(desc, rnn_direction, (_HELD, _BIAS_ADDED_TO_SUM), biases=2)
