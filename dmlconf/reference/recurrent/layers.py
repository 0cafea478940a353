"""The outputs of LSTM, GRU and RNN in all directions, from the equations of one direction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.recurrent.sequences import Sequences, in_data_types, in_directions
from dmlconf.reference.recurrent.values import EXACT, Arithmetic, State, Values
from dmlconf.tensors.datatypes import Array

__all__ = [
    "AnyLayerDesc",
    "Direction",
    "LayerDesc",
    "layer_outputs",
    "reference_outputs",
]


class LayerDesc(Protocol):
    """Some fields that the descs of LSTM, GRU and RNN have in common, and their outputs.

    `rnn` explains the letters of sizes.
    """

    @property
    def InputTensor(self) -> Array:
        """The input, sizes {1, T, N, I}."""
        ...

    @property
    def WeightTensor(self) -> Array:
        """The weights, sizes {1, D, gates * H, I}."""
        ...

    @property
    def RecurrenceTensor(self) -> Array:
        """The recurrence, sizes {1, D, gates * H, H}."""
        ...

    @property
    def SequenceLengthsTensor(self) -> Array | None:
        """The lengths, sizes {1, 1, 1, N}; None if all sequences have the length T."""
        ...

    @property
    def Direction(self) -> str:
        """FORWARD, BACKWARD or BIDIRECTIONAL."""
        ...

    @property
    def outputs(self) -> tuple[TensorDesc | None, ...]:
        """OutputSequenceTensor, OutputSingleTensor and, in LSTM, OutputCellSingleTensor."""
        ...


AnyLayerDesc = TypeVar("AnyLayerDesc", bound=LayerDesc)

Direction = Callable[[AnyLayerDesc, Arithmetic, int, Sequences, bool], tuple[Values, State]]
"""Computes one direction, such as `gru_direction`.

Takes the desc, the arithmetic, the direction's index 0 or 1, the sequences in the direction's
order, and whether they are reversed. Returns the hidden nodes after every step, in the same order,
and the state after the last step.
"""


def reference_outputs(desc: AnyLayerDesc, direction: Direction[AnyLayerDesc]) -> tuple[Array, ...]:
    """Return the outputs that a desc asks for, computed in FLOAT64, in their data types."""
    outputs = layer_outputs(desc, direction, EXACT)
    return in_data_types([output.value for output in outputs], desc.outputs)


def layer_outputs(
    desc: AnyLayerDesc, direction: Direction[AnyLayerDesc], arithmetic: Arithmetic
) -> tuple[Values, ...]:
    """Return all outputs that a desc may ask for, before the conversion to their data types.

    Args:
        arithmetic: evaluates the equations, exactly or with rounding errors.
    """
    lengths = desc.SequenceLengthsTensor
    sequences = Sequences.of(desc.InputTensor, lengths, arithmetic.copies)
    layer = partial(direction, desc, arithmetic)
    with np.errstate(all="ignore"):
        return in_directions(desc.Direction, sequences, layer, arithmetic)
