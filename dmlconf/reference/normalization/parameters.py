"""What batch normalisation and its gradients compute from parameters such as the variance."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "deviation_of",
    "shared_dimensions",
]


def shared_dimensions(parameter: Array) -> tuple[int, ...]:
    """Return the dimensions in which a parameter has size 1."""
    return tuple(axis for axis, size in enumerate(parameter.shape) if size == 1)


def deviation_of(variance: Array, epsilon: float) -> Array:
    """Return `sqrt(variance + epsilon)`, FLOAT64."""
    root: Array = np.sqrt(wide(variance) + single(epsilon))
    return root
