"""Whether the errors of a sum's terms are independent, and errors of steps before or after a sum.

The errors of 10,000 equal terms all have the same sign and add up. The errors of 10,000 different
terms mostly cancel: their sum is about 100 times one error.

Derived in docs/bounds.md, Terms that differ and Steps around a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dmlconf.permitted.numbers.rounding import HALF_STEP
from dmlconf.precision.accumulation import roundings
from dmlconf.tensors.datatypes import Array

__all__ = ["alike", "steps_beside_sum", "terms_vary", "values_repeat"]

_LEAST: Final = 64
"""The least number of terms for which independent errors stay well below those of equal terms."""

_SAMPLE: Final = 128
"""The most terms of each sum whose lowest bytes are compared, to see whether the terms differ."""

_MOST_SUMS: Final = 1 << 12
"""The most sums whose terms are examined."""


def terms_vary(terms: Array, over: Sequence[int]) -> bool:
    """Return whether the terms of each sum differ in their last bits.

    A sum drops the bits of a term below the sum's unit in the last place (ULP). The errors of terms
    that agree in these bits, or are too small to change the sum, add up.

    Returns:
        Whether there are at most 4,096 sums, and for the n terms of each:

        - n is at least 64;
        - a sample of up to 128 FLOAT32 terms has more different last bytes than half its terms;
        - no FLOAT32 number but 0 occurs more than r times, r being sqrt(n) rounded down;
        - sizes below h have a sum of at most r * h, h being 2^-24 times the sum of all sizes.
    """
    count = math.prod(terms.shape[axis] for axis in over)
    if count < _LEAST or terms.size // count > _MOST_SUMS:
        return False
    rest = [axis for axis in range(terms.ndim) if axis not in {at % terms.ndim for at in over}]
    rows = terms.transpose(*rest, *sorted({at % terms.ndim for at in over})).reshape(-1, count)
    sample = np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64)
    with np.errstate(all="ignore"):
        last = np.sort(rows[:, sample].astype(np.float32).view(np.uint32) & 0xFF, axis=-1)
    different = 1 + np.count_nonzero(np.diff(last, axis=-1), axis=-1)
    return bool((2 * different > len(sample)).all()) and not _some_err_alike(rows)


_MOST_LINES: Final = 256
"""Up to 511 lines are all examined; of more, 256 to 511 evenly spaced ones."""


def values_repeat(values: Array, axis: int) -> bool:
    """Return whether a number other than 0 makes up much of a line of FLOAT32 numbers.

    A line extends along the axis and has n numbers. The result is true if n is at least 64, and a
    number other than 0 occurs more than sqrt(n) times in its line. Of more than 511 lines, only
    some are examined. False for other types than FLOAT32.
    """
    count = values.shape[axis]
    if values.dtype != np.float32 or count < _LEAST:
        return False
    lines = np.moveaxis(values, axis, -1).reshape(-1, count)
    return bool(_often(lines[:: max(1, len(lines) // _MOST_LINES)]).any())


def _often(rows: Array) -> Array:
    """Return in which rows of n terms a FLOAT32 number but 0 occurs more than sqrt(n) times."""
    root = math.isqrt(rows.shape[1])
    ordered = np.sort(rows.astype(np.float32), axis=-1)
    often = (ordered[:, root:] == ordered[:, :-root]) & (ordered[:, root:] != 0)
    return np.asarray(often.any(-1))


def _some_err_alike(rows: Array) -> bool:
    """Return whether a row of terms has too many equal ones, or too many lost in its sum."""
    root = math.isqrt(rows.shape[1])
    with np.errstate(all="ignore"):
        often = _often(rows)
        sizes = np.abs(rows, dtype=np.float64)
        half_ulp = HALF_STEP * sizes.sum(-1, keepdims=True)
        negligible = np.where(sizes < half_ulp, sizes, 0.0).sum(-1, keepdims=True)
        return bool(often.any() or (negligible > root * half_ulp).any())


def alike(terms: Array, over: Sequence[int]) -> float:
    """Return how many times larger a sum's error may be than that of a sum with independent errors.

    If n terms are alike, it is n / `roundings(n)`: 10.1 for 1,000 terms. It is 1 if `terms_vary`,
    for fewer than 64 terms, for more than 4,096 sums, and for FLOAT16 terms, since FLOAT32 hardly
    rounds their sums.
    """
    count = math.prod(terms.shape[axis] for axis in over)
    if terms.dtype == np.float16 or count < _LEAST or terms.size // count > _MOST_SUMS:
        return 1.0
    return 1.0 if terms_vary(terms, over) else count / roundings(count)


def steps_beside_sum(sizes: Array, terms: int) -> Array:
    """Return the error scale of steps before or after a sum, such as a division by its length.

    A step is rounded once, but the rule multiplies the whole error scale by the roundings of n
    terms. So the result is the error of the step, divided by that number.

    Args:
        sizes: the sum of the sizes that are rounded, each times the half ULPs that it may be off.
        terms: n, how many terms the rule counts.
    """
    scale: Array = sizes / roundings(terms)
    return scale
