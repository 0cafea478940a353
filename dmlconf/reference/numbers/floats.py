"""Convert elements to FLOAT64, the type of most computations, and back; attributes to FLOAT32.

Conversions of attributes to integers are in `attributes`.
"""

from __future__ import annotations

from ctypes import c_float
from typing import Any

import numpy as np

from dmlconf.tensors.datatypes import Array

__all__ = ["narrowed", "single", "wide"]


def single(attribute: float) -> float:
    """Return an attribute as the FLOAT32 number that DirectML takes; infinity beyond its range."""
    return c_float(attribute).value


@np.errstate(invalid="ignore")  # Converting a signalling NaN warns.
def wide(tensor: Array) -> Array:
    """Return a tensor's elements as FLOAT64 numbers."""
    return tensor.astype(np.float64)


@np.errstate(all="ignore")
def narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return results in an output's type, by way of FLOAT32, in which kernels compute."""
    return values.astype(np.float32).astype(dtype, copy=False)
