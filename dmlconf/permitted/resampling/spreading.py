"""The elements to which infinite, NaN or enormous gradients of LINEAR may contribute."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.resampling.interpolation import Coordinates
from dmlconf.tensors.datatypes import Array

__all__ = [
    "elements_within_reach",
]


def elements_within_reach(marked: Array, axis: int, at: Coordinates, size: int) -> Array:
    """Return to which elements marked gradients may contribute along one axis.

    A gradient between gradients at the coordinates 1.5 and 3.5 may contribute to the elements 0 to
    5. The first gradient reaches to the first element, and the last gradient to the last element.
    Measured on DirectML 1.15.4: a gradient whose coordinate is outside the tensor may contribute to
    all elements along the axis.
    """
    of_axis = np.moveaxis(marked, axis, 0)
    result = np.zeros((size, *of_axis.shape[1:]), bool)
    indices = np.clip(np.floor(at.values), -1, size).astype(np.intp)
    first, last = np.roll(indices - 1, 1), np.roll(indices + 2, -1)
    first[0], last[-1] = 0, size - 1
    outside = (at.values < 0) | (at.values > size - 1)
    first[outside], last[outside] = 0, size - 1
    for index in np.flatnonzero(of_axis.reshape(len(indices), -1).any(axis=1)):
        result[max(first[index], 0) : last[index] + 1] |= of_axis[index]
    return np.moveaxis(result, 0, axis)
