"""How far LSTM may be from the reference's outputs, and what its kernels hold in FLOAT16.

Derived in docs/bounds.md, Recurrent layers.
"""

from __future__ import annotations

from typing import Final

from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.recurrent.kernels import Sites
from dmlconf.permitted.recurrent.layers import error_scales
from dmlconf.reference.fields import of_fields
from dmlconf.reference.recurrent.lstm import LstmDesc, lstm_direction

__all__ = [
    "lstm_error_scale",
]

_HELD: Final[Sites] = frozenset({"bias", "sum with bias", "product", "state"})
"""What DirectML holds: the sum of both biases, the input's products with it, the products of the
hidden nodes, and hidden nodes and cell between two steps.

Measured: a simulation gives every element of the recorded sequences that run forward with sigmoid
and tanh; one that holds gates as well gives 16%, one that holds products of gates 49%."""


@of_fields(LstmDesc)
def lstm_error_scale(desc: LstmDesc) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `lstm`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    return error_scales(desc, lstm_direction, (_HELD,), biases=3)
