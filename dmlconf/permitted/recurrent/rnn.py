"""Permitted errors of RNN, and the values that its kernels store in FLOAT16.

Derived in docs/bounds.md, Recurrent layers.
"""

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

_HELD: Final[Sites] = frozenset({"bias", "sum", "sum with bias", "product", "state"})
"""The values that DirectML stores in FLOAT16: products with matrices, the sum of both biases, the
input's products plus that sum, and hidden nodes. Measured by a simulation."""


@of_fields(RnnDesc)
def rnn_error_scale(desc: RnnDesc) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `rnn`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    return error_scales(desc, rnn_direction, (_HELD,), biases=2)
