"""Permitted results of NONZERO_COORDINATES in a graph, where elements may be zero or not.

If 2 elements are certainly not zero, and 2 others may be zero or not, the count is 2, 3 or 4. The
first row may have the coordinates of any element before which no element is certainly nonzero.
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
"""The most numbers in all further arrays of coordinates together; if there are more, there are no
choices."""


def nonzero_choices(case: Case, low: Array, high: Array) -> dict[str, list[Array]]:
    """Return further right outputs of NONZERO_COORDINATES, by name.

    The elements of its input lie between `low` and `high`.
    """
    certain, possible = _states(low, high)
    coordinates = prod(case.desc["OutputCoordinatesTensor"].Sizes)
    if not 0 < (possible & ~certain).sum() * coordinates <= _MOST_COORDINATES:
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
    """Return which elements are certainly not zero, and which may be other than zero."""
    nan = np.isnan(low) | np.isnan(high)
    return (low > 0) | (high < 0) | nan, (low != 0) | (high != 0)


def _counts(case: Case, certain: Array, possible: Array) -> Iterator[Array]:
    desc = case.desc["OutputCountTensor"]
    for count in range(int(certain.sum()), int(possible.sum()) + 1):
        yield np.full(desc.Sizes, count, desc.DataType.dtype)


def _coordinates(case: Case, certain: Array, possible: Array) -> Iterator[Array]:
    """Yield arrays of coordinates of the elements that may be nonzero.

    In the first array, row i has those of possible element i. In array k, it has those of element
    i + k or, if too many certain elements come before that one, of the last that may be in row i.
    """
    desc = case.desc["OutputCoordinatesTensor"]
    rows, columns = desc.Sizes[-2:]
    indices = np.stack(np.nonzero(possible), axis=-1)[:, certain.ndim - columns :]
    is_certain = certain[possible]
    before = np.cumsum(is_certain) - is_certain
    row = np.arange(rows)
    for further in range(int((~is_certain).sum()) + 1):
        element = np.minimum(row + further, len(indices) - 1)
        # A row may hold an element only if at most `row` certain elements come before it.
        latest = np.searchsorted(before, row, side="right") - 1
        yield indices[np.minimum(element, latest)].astype(desc.DataType.dtype).reshape(desc.Sizes)
