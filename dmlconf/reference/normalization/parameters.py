"""Parameters that several elements share: a mean, a variance, a scale."""

from __future__ import annotations

import numpy as np

from dmlconf.reference.numbers.floats import single, wide
from dmlconf.tensors.datatypes import Array

__all__ = [
    "deviation_of",
    "finite_sum",
    "shared_dimensions",
    "sizes_of",
    "unbounded",
]


def finite_sum(sizes: Array, over: tuple[int, ...]) -> Array:
    """Return the sum of what is finite: that it overflows may tell beside an infinity."""
    total: Array = sizes.sum(over, keepdims=True, where=np.isfinite(sizes))
    return total


def unbounded(factor: Array, deviation: Array) -> Array:
    """Tell where a factor is infinite, or may be since the root of a subnormal number is lost."""
    underflow = np.square(deviation) < float(np.finfo(np.float32).tiny)
    return np.isinf(factor) | (underflow & (np.abs(factor) > 0))


def shared_dimensions(parameter: Array) -> tuple[int, ...]:
    """Return the dimensions along which all elements share a parameter."""
    return tuple(axis for axis, size in enumerate(parameter.shape) if size == 1)


def deviation_of(variance: Array, epsilon: float) -> Array:
    """Return the root of the variance with epsilon, FLOAT64."""
    root: Array = np.sqrt(wide(variance) + single(epsilon))
    return root


def sizes_of(tensor: Array) -> Array:
    """Return the absolute values, FLOAT64."""
    size: Array = np.abs(tensor, dtype=np.float64)
    return size
