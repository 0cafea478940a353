"""Which elements a gradient may reach, where coordinates are not certain."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.resampling.interpolation import Coordinates
from dmlconf.tensors.datatypes import Array

__all__ = [
    "reached",
]


def reached(marked: Array, axis: int, at: Coordinates, size: int) -> Array:
    """Return which elements lie next to a marked one: up to its neighbours' coordinates.

    Measured on DirectML 1.15.4: one whose coordinate is outside also reaches elements further in,
    so that it counts for the whole axis.
    """
    of_axis = np.moveaxis(marked, axis, 0)
    result = np.zeros((size, *of_axis.shape[1:]), bool)
    places = np.clip(np.floor(at.values), -1, size).astype(np.intp)
    first, last = np.roll(places - 1, 1), np.roll(places + 2, -1)
    first[0], last[-1] = 0, size - 1
    outside = (at.values < 0) | (at.values > size - 1)
    first[outside], last[outside] = 0, size - 1
    for place in np.flatnonzero(of_axis.reshape(len(places), -1).any(axis=1)):
        result[max(first[place], 0) : last[place] + 1] |= of_axis[place]
    return np.moveaxis(result, 0, axis)
