"""Permitted errors of LSTM, and the values that its kernels store in FLOAT16."""

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
"""The values that DirectML stores in FLOAT16. A step computes X W + (B_w + B_r) + H R, and stores

- `bias`: the sum of both biases, B_w + B_r;
- `sum with bias`: X W + (B_w + B_r);
- `product`: H R;
- `state`: the hidden nodes H and the cell, from one step to the next.

Measured: a simulation that stores these values gives every element of the recorded sequences that
run forward with sigmoid and tanh."""


@of_fields(LstmDesc)
def lstm_error_scale(desc: LstmDesc) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs of `lstm`, for the same arguments.

    Derived in docs/bounds.md, Recurrent layers.
    """
    return error_scales(desc, lstm_direction, (_HELD,), biases=3)
