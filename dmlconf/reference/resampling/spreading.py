"""Weighted sums of elements along an axis, for gradients of interpolation."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.resampling.interpolation import Coordinates, along, neighbours
from dmlconf.tensors.datatypes import Array

__all__ = [
    "spread",
    "summed",
    "weighted",
]


def spread(values: Array, axis: int, at: Coordinates, size: int) -> Array:
    """Return `size` sums along an axis; an element adds to the two sums around its coordinate.

    An element x at the coordinate 1.25 adds 0.75 x to sum 1 and 0.25 x to sum 2. An element beyond
    an end adds to the outermost sum.
    """
    first, second, weight = neighbours(at.values, size)
    indices = np.concatenate([first, second])
    order = np.argsort(indices, kind="stable")
    weights = np.concatenate([1 - weight, weight])[order]
    return weighted(values, axis, order % len(first), weights, indices[order], size)


def summed(values: Array, axis: int, indices: Array, size: int) -> Array:
    """Return `size` sums along an axis.

    Args:
        indices: for each element, the index of its sum, in ascending order.
    """
    count = len(indices)
    return weighted(values, axis, np.arange(count), np.ones(count), indices, size)


def weighted(
    values: Array, axis: int, elements: Array, weights: Array, indices: Array, size: int
) -> Array:
    """Return `size` sums along an axis of elements of a FLOAT64 tensor times weights.

    Args:
        elements, weights, indices: for each term, the index of its element, its weight, and the
            index of its sum, in ascending order of `indices`.
    """
    starts = np.flatnonzero(np.diff(indices, prepend=-1))
    counts = np.diff(starts, append=len(indices))
    # With the axis first, a term is a whole row, which is read and added at once.
    rows = np.ascontiguousarray(np.moveaxis(values, axis, 0))
    sums = np.zeros((size, *rows.shape[1:]))
    if counts.max() > len(starts):
        terms = rows.take(elements, 0) * along(weights, 0, values.ndim)
        sums[indices[starts]] = np.add.reduceat(terms, starts, 0)
    else:
        for number in range(counts.max()):
            # The first term of every sum, then the second term, and so on.
            chosen = starts[counts > number] + number
            terms = rows.take(elements[chosen], 0)
            terms *= along(weights[chosen], 0, values.ndim)
            sums[indices[chosen]] += terms
    return np.moveaxis(sums, 0, axis)
