"""Faults that change correct values into another array of the same shape and data type."""

from __future__ import annotations

import numpy as np

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["last_negated", "negated", "scaled"]


def negated(array: Array, data_type: DataType) -> Array:
    """Return each element with its sign flipped; integers wrap, as in two's complement."""
    if data_type.is_float:
        return -array
    wrapped: Array = np.negative(array)
    return _nibbles(wrapped, data_type) if data_type.bits == 4 else wrapped


def last_negated(array: Array, data_type: DataType) -> Array:
    """Return the elements; the sign of the last one in row-major order is flipped."""
    changed = np.array(array)
    changed.reshape(-1)[-1:] = negated(changed.reshape(-1)[-1:], data_type)
    return changed


def scaled(array: Array, data_type: DataType, by: float) -> Array:
    """Return each element times a factor; integers are rounded and saturate."""
    with np.errstate(over="ignore"):
        product = array.astype(np.float64) * by
        if data_type.is_float:
            return product.astype(array.dtype)
    # The largest 64-bit integers are not representable in FLOAT64; the next lower FLOAT64 is used.
    highest = np.float64(data_type.maximum)
    if int(highest) > data_type.maximum:
        highest = np.nextafter(highest, 0)
    rounded: Array = np.clip(np.rint(product), data_type.minimum, highest).astype(array.dtype)
    return rounded


def _nibbles(array: Array, data_type: DataType) -> Array:
    """Return 4-bit integers, stored one per byte, wrapped to their range."""
    low: Array = array & 0xF
    return np.where(low > data_type.maximum, low - 16, low).astype(array.dtype)
