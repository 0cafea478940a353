"""Error maps: a coarse grid that shows where a failing output is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.figures import ErrorMap

__all__ = ["error_map"]

MOST_ROWS: Final = 16
MOST_COLUMNS: Final = 32
"""The most rows and columns of a grid; in a larger output, a cell has several elements."""

_DECADES: Final = 8
"""The number of limits between the levels 1 to 9 of elements' errors: 1e-8, 1e-7, ..., 0.1.

They are limits of s, an error divided by the largest finite expected magnitude, or by 1 if that is
0 or no expected value is finite. An element has level 1 if s < 1e-8, and level 9 if s >= 0.1 or the
error is not finite. Equal bits and two NaN have level 0.
"""


def error_map(actual: Array, expected: Array) -> ErrorMap:
    """Return the error map of two arrays of one shape and type, which are not empty."""
    sizes = actual.shape
    axes = _split(sizes)
    columns = int(np.prod(sizes[axes:], dtype=np.int64))
    levels = _levels(actual, expected).reshape(-1, columns)
    grid = _pooled(_pooled(levels, MOST_ROWS).T, MOST_COLUMNS).T
    return ErrorMap(tuple("".join(map(str, row)) for row in grid), axes, tuple(sizes))


def _split(sizes: Sequence[int]) -> int:
    """Return how many leading axes make up the rows.

    The columns run along the last axis, and along axes before it, but not the first, while there
    are fewer than two columns.
    """
    axes = max(0, len(sizes) - 1)
    while axes > 1 and int(np.prod(sizes[axes:])) < 2:
        axes -= 1
    return axes


def _levels(actual: Array, expected: Array) -> Array:
    with np.errstate(all="ignore"):  # Conversion of signalling NaN warns too.
        a, e = actual.astype(np.float64), expected.astype(np.float64)
        error = np.abs(a - e)
        finite = np.isfinite(e)
        largest = np.abs(e[finite]).max(initial=0.0) or 1.0
        decade = np.floor(np.log10(error / largest)) + _DECADES + 2
    levels = np.clip(np.nan_to_num(decade, nan=0.0, posinf=9, neginf=0), 1, 9).astype(np.uint8)
    levels[~np.isfinite(error)] = 9
    same = actual.view(f"u{actual.dtype.itemsize}") == expected.view(f"u{expected.dtype.itemsize}")
    levels[same | (np.isnan(a) & np.isnan(e))] = 0
    graded: Array = levels
    return graded


def _pooled(levels: Array, most: int) -> Array:
    """Return the greatest level in each group of rows, in at most `most` groups."""
    count = min(most, len(levels))
    starts = np.arange(count) * len(levels) // count
    pooled: Array = np.maximum.reduceat(levels, starts, axis=0)
    return pooled
