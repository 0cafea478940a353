"""Operators that copy whole tensors into another: JOIN and TILE. SPLIT is in `slicing`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.tensors.datatypes import Array

__all__ = ["join", "tile"]


def join(InputTensors: Sequence[Array], OutputTensor: TensorDesc, Axis: int) -> Array:
    """InputTensors {D0, ..., Ai, ...} -> OutputTensor {D0, ..., A0 + A1 + ..., ...}; FLOAT64 to
    FLOAT16, INT64 to INT8, UINT64 to UINT8

    Return the inputs one after another along an axis.

    Source: the page of DML_JOIN_OPERATOR_DESC.
    """
    return np.concatenate(InputTensors, Axis)


def tile(InputTensor: Array, OutputTensor: TensorDesc, Repeats: Sequence[int]) -> Array:
    """InputTensor {D0, D1, ...} -> OutputTensor {D0 * R0, D1 * R1, ...}; FLOAT32, FLOAT16, INT64 to
    INT8, UINT64 to UINT8

    Return the input repeated along each dimension as often as Repeats, {R0, R1, ...}, says.

    Source: the page of DML_TILE_OPERATOR_DESC.
    """
    return np.tile(InputTensor, Repeats)
