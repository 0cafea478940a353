"""Permitted results of NONZERO_COORDINATES in a graph, where elements may be zero or not.

If 2 elements are certainly not zero, and 2 others may be zero or not, the count is 2, 3 or 4. The
first row has the coordinates of the first certainly nonzero element, or of an uncertain one before
it. NaN is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array

__all__ = ["nonzero_choices", "uncertain_rows"]

_MOST_COORDINATES: Final = 1 << 22
"""The most numbers in all arrays of coordinates together; with more, there are no choices."""


def nonzero_choices(case: Case, low: Array, high: Array) -> dict[str, list[Array]]:
    """Return further right outputs of NONZERO_COORDINATES, by name.

    The elements of its input lie between `low` and `high`. There are no outputs if each element is
    certainly zero or certainly not, or if coordinates exceed `_MOST_COORDINATES` numbers.
    """
    certain, possible = _states(low, high)
    uncertain = int((possible & ~certain).sum())
    coordinates = prod(case.desc["OutputCoordinatesTensor"].Sizes)
    # `_coordinates` yields one array more than there are uncertain elements.
    if uncertain == 0 or (uncertain + 1) * coordinates > _MOST_COORDINATES:
        return {}
    return {
        "OutputCountTensor": list(_counts(case, certain, possible)),
        "OutputCoordinatesTensor": list(_coordinates(case, certain, possible)),
    }


def uncertain_rows(case: Case, low: Array, high: Array) -> Array | None:
    """Return which coordinates may be undefined: rows beyond the certainly nonzero elements.

    None if each element is certainly zero or certainly not.
    """
    certain, possible = _states(low, high)
    if (certain == possible).all():
        return None
    sizes = case.desc["OutputCoordinatesTensor"].Sizes
    rows = np.arange(sizes[-2])[:, None] >= certain.sum()
    return np.broadcast_to(rows, sizes[-2:]).reshape(sizes)


def _states(low: Array, high: Array) -> tuple[Array, Array]:
    """Return which elements are certainly not zero, and which may be nonzero."""
    nan = np.isnan(low) | np.isnan(high)
    return (low > 0) | (high < 0) | nan, (low != 0) | (high != 0)


def _counts(case: Case, certain: Array, possible: Array) -> Iterator[Array]:
    desc = case.desc["OutputCountTensor"]
    for count in range(int(certain.sum()), int(possible.sum()) + 1):
        yield np.full(desc.Sizes, count, desc.DataType.dtype)


def _coordinates(case: Case, certain: Array, possible: Array) -> Iterator[Array]:
    """Yield arrays of coordinates, one more than there are uncertain elements.

    Row i of array k has the coordinates of the element with index i + k among those that may be
    nonzero, but of none after the last that may be in row i. Elements are in row-major order.
    """
    desc = case.desc["OutputCoordinatesTensor"]
    rows, columns = desc.Sizes[-2:]
    indices = np.stack(np.nonzero(possible), axis=-1)[:, certain.ndim - columns :]
    is_certain = certain[possible]
    before = np.cumsum(is_certain) - is_certain
    row = np.arange(rows)
    for further in range(int((~is_certain).sum()) + 1):
        element = np.minimum(row + further, len(indices) - 1)
        # An element may be in a row only if at most `row` certain elements come before it.
        latest = np.searchsorted(before, row, side="right") - 1
        yield indices[np.minimum(element, latest)].astype(desc.DataType.dtype).reshape(desc.Sizes)
