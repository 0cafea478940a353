"""Operators that turn the elements along some axes into shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["activation_softmax1", "activation_softmax1_magnitude"]

_EXP_ERROR: Final = 8.0
"""The relative error of exp2, 2^-21, in halves of the last place of FLOAT32."""


def activation_softmax1(InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]) -> Array:
    """Return `exp(x) / sum(exp(x))` over the axes.

    Source: the page of DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC.
    """
    with np.errstate(all="ignore"):
        shares, _ = _shares(InputTensor, Axes)
        result: Array = shares.astype(OutputTensor.DataType.dtype)
    return result


def activation_softmax1_magnitude(
    InputTensor: Array, OutputTensor: TensorDesc, Axes: Sequence[int]
) -> Array:
    """Return the shares, enlarged by what powers and quotient may lose.

    Source: Direct3D 11.3 functional specification: exp2 has a relative error of 2^-21, and its
    argument is rounded.
    """
    with np.errstate(all="ignore"):
        shares, below = _shares(InputTensor, Axes)
        own = _EXP_ERROR + 2 * np.where(np.isfinite(below), np.abs(below), 0)
        all_together = (shares * own).sum(_axes(Axes), keepdims=True)
        # FLOAT16 outputs are rounded from FLOAT32, so these errors hardly show in them.
        finer = 0.5 if OutputTensor.DataType.bits > 16 else 2.0**-14
        magnitude: Array = shares * (1 + finer * (own + all_together + 4))
    return magnitude


def _axes(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(axes)))


def _shares(tensor: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return the shares, FLOAT64, and how far each element is below the largest of its row."""
    wide = tensor.astype(np.float64)
    over = _axes(axes)
    below = wide - wide.max(over, keepdims=True)
    powers = np.exp(below)
    return powers / powers.sum(over, keepdims=True), below
