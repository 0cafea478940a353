"""The outputs of recurrent layers, from the equations of one direction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.quantity import Quantity
from dmlconf.reference.recurrent.kernels import EXACT, Kernels
from dmlconf.reference.recurrent.sequences import Sequences, State, in_data_types, in_directions
from dmlconf.tensors.datatypes import Array

__all__ = [
    "AnyLayerDesc",
    "LayerDesc",
    "layer_outputs",
    "values",
]


class LayerDesc(Protocol):
    """The fields that the descs of all recurrent layers have, and the outputs among them."""

    @property
    def InputTensor(self) -> Array:
        """The input, sizes {1, T, N, I}."""
        ...

    @property
    def RecurrenceTensor(self) -> Array:
        """The recurrence, sizes {1, R, gates * H, H}."""
        ...

    @property
    def SequenceLengthsTensor(self) -> Array | None:
        """The lengths, sizes {1, 1, 1, N}."""
        ...

    @property
    def Direction(self) -> str:
        """FORWARD, BACKWARD or BIDIRECTIONAL."""
        ...

    @property
    def outputs(self) -> tuple[TensorDesc | None, ...]:
        """The sequence of hidden nodes, and the parts of the last state."""
        ...


AnyLayerDesc = TypeVar("AnyLayerDesc", bound=LayerDesc)

Direction = Callable[[AnyLayerDesc, Kernels, int, Sequences, bool], tuple[Quantity, State]]
"""Computes one direction, by its index, as kernels do; the rest is as `in_directions` has it."""


def values(desc: AnyLayerDesc, direction: Direction[AnyLayerDesc]) -> tuple[Array, ...]:
    """Return the outputs that a desc has, in their data types.

    Args:
        desc: the desc.
        direction: its equations.
    """
    outputs = layer_outputs(desc, direction, EXACT, followed=False)
    return in_data_types([quantity.value for quantity in outputs], desc.outputs)


def layer_outputs(
    desc: AnyLayerDesc, direction: Direction[AnyLayerDesc], kernels: Kernels, *, followed: bool
) -> tuple[Quantity, ...]:
    """Return what kernels compute of all outputs, with their errors if these are followed."""
    lengths = desc.SequenceLengthsTensor
    sequences = Sequences.of(desc.InputTensor, lengths, followed, kernels.count)
    with np.errstate(all="ignore"):
        return in_directions(desc.Direction, sequences, partial(direction, desc, kernels))
