"""The share of a sample's gradient that each element gets if the coordinate has an error.

With linear interpolation, a sample at 2.3 gives 0.7 of its gradient to element 2 and 0.3 to element
3. If the coordinate may be off by 0.1, element 2 gets 0.6 to 0.8, and element 3 gets 0.2 to 0.4.

Source: Direct3D 11.3 functional specification, 3.1 (FLOAT32 arithmetic gives the coordinates).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["Share", "axis_shares", "coordinates_within"]


@dataclass(frozen=True)
class Share:
    """For each coordinate, the share of one element near it.

    Attributes:
        index: the element's index along one axis or in the tensor.
        share: the element's share if the coordinate has no error.
        least, most: the least and the greatest share that the coordinate's error permits.
    """

    index: Array
    share: Array
    least: Array
    most: Array


def axis_shares(at: Array, errors: Array, size: int, *, linear: bool) -> Iterator[Share]:
    """Yield the shares of the first element near each coordinate, then of the second and so on.

    Args:
        size: the size of the axis; coordinates outside count as its nearest end.
        linear: whether two elements share a gradient; if not, the nearest element gets all of it,
            and of two equally near elements the one with the higher index.
    """
    low, middle, high = at - errors, at, at + errors
    if not linear:
        low, middle, high = (np.floor(end + 0.5) for end in (low, middle, high))
    low, middle, high = (np.clip(end, 0, size - 1) for end in (low, middle, high))
    first = np.floor(low)
    cells = np.nan_to_num(np.floor(high) - first)
    for step in range(min(size, int(cells.max(initial=0)) + 1 + int(linear))):
        index = first + step
        if linear:
            least = np.minimum(_tent(low - index), _tent(high - index))
            most = _tent(np.clip(index, low, high) - index)
            yield Share(index, _tent(middle - index), least, most)
        else:
            share = np.where(middle == index, 1.0, 0.0)
            least = np.where((low == index) & (high == index), 1.0, 0.0)
            yield Share(index, share, least, np.where(index <= high, 1.0, 0.0))


def coordinates_within(at: Array, errors: Array) -> tuple[Array, ...]:
    """Return the coordinates where a function that is linear between elements is least or greatest.

    The results are the ends of each coordinate's interval, and the nearest element within it.
    Without errors, the result is `at` alone.
    """
    low, high = at - errors, at + errors
    return (low, np.clip(np.rint(at), low, high), high) if errors.any() else (at,)


def _tent(distance: Array) -> Array:
    """Return the weight of an element at a distance: 0.7 at 0.3, 0 at 1 or more."""
    height: Array = np.maximum(1 - np.abs(distance), 0)
    return height
