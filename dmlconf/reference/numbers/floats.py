"""Elements as FLOAT64 numbers, in which is computed, and attributes as FLOAT32 numbers."""

from __future__ import annotations

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["single", "wide"]


def single(attribute: float) -> float:
    """Return an attribute as the FLOAT32 number that DirectML takes; infinity beyond its range."""
    with np.errstate(over="ignore"):
        return float(np.float32(attribute))


def wide(tensor: Array) -> Array:
    """Return a tensor's elements as FLOAT64 numbers."""
    # Converting a signalling NaN warns.
    with np.errstate(invalid="ignore"):
        return tensor.astype(np.float64)
