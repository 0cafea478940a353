"""Round numbers toward zero without dmlconf, whose rounding the tests compare with this."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from dmlconf.tensors.datatypes import Array

__all__ = ["toward_zero"]


def toward_zero(values: ArrayLike, dtype: DTypeLike = np.float16) -> Array:
    """Return values rounded toward zero to a floating-point type, as FLOAT64 of the same shape.

    Finite values stay finite: 70,000 becomes 65,504 in FLOAT16.
    """
    exact = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        nearest = exact.astype(dtype)
    below = np.nextafter(nearest, nearest.dtype.type(0))
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(exact)
    return np.where(beyond, below, nearest).astype(np.float64)
