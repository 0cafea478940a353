"""Activations inside other operators: fused, such as RELU in GEMM, or in layers such as LSTM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from dmlconf.reference.activation.formulas import FORMULAS, attributes_of
from dmlconf.tensors.datatypes import Array

__all__ = [
    "Activation",
    "fused",
]


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation of gates or states of recurrent layers: RNN, GRU and LSTM.

    Measured in GRU and LSTM: RELU of NaN or negative infinity is 0. In operators such as GEMM, a
    fused RELU gives NaN for both.

    Attributes:
        desc: the nested operator: its name as `operator`, and its attributes.
        formula: the activation as a function of FLOAT64 values.
    """

    desc: Mapping[str, Any]
    formula: Callable[[Array], Array]

    @classmethod
    def each(cls, descs: Sequence[Mapping[str, Any]]) -> list[Activation]:
        """Return an activation for each desc."""
        return [
            cls(desc, partial(_OF_LAYERS[desc["operator"]], **attributes_of(desc)))
            for desc in descs
        ]


def _fused_relu(x: Array) -> Array:
    # Measured: NaN and negative infinity give NaN, and -1 gives -0.
    return x * (x > 0)


def _fused_clip(x: Array, Min: float, Max: float) -> Array:
    return np.fmax(np.fmin(x, Max), Min)


_FUSED: Final[Mapping[str, Callable[..., Array]]] = {
    **FORMULAS,
    "ACTIVATION_RELU": _fused_relu,
    "ELEMENT_WISE_CLIP": _fused_clip,
}

_OF_LAYERS: Final[Mapping[str, Callable[..., Array]]] = {
    **_FUSED,
    "ACTIVATION_RELU": FORMULAS["ACTIVATION_RELU"],
}


def fused(values: Array, activation: Mapping[str, Any] | None) -> Array:
    """Return FLOAT64 values after a fused activation; the values themselves if it is None.

    Args:
        activation: `operator`, which is a key of `FORMULAS` or ELEMENT_WISE_CLIP, and the
            attributes by name.
    """
    if activation is None:
        return values
    with np.errstate(all="ignore"):
        return _FUSED[activation["operator"]](values, **attributes_of(activation))
