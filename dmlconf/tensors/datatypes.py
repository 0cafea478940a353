"""The tensor data types of DirectML (`DML_TENSOR_DATA_TYPE`)."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np

__all__ = ["Array", "DataType", "bits_of"]

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any of the data types; 4-bit types have one element per byte."""


class DataType(StrEnum):
    """A `DML_TENSOR_DATA_TYPE` except UNKNOWN, without the prefix.

    Source: DirectML.h, `enum DML_TENSOR_DATA_TYPE`.
    """

    FLOAT64 = "FLOAT64"
    FLOAT32 = "FLOAT32"
    FLOAT16 = "FLOAT16"
    INT64 = "INT64"
    INT32 = "INT32"
    INT16 = "INT16"
    INT8 = "INT8"
    INT4 = "INT4"
    UINT64 = "UINT64"
    UINT32 = "UINT32"
    UINT16 = "UINT16"
    UINT8 = "UINT8"
    UINT4 = "UINT4"

    @property
    def bits(self) -> int:
        """Bits of one element in a DirectML buffer."""
        return _bits(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of one element: `int8` for INT4 and INT8."""
        return _dtype(self)

    @property
    def stored(self) -> DataType:
        """The data type of `dtype`: INT8 for INT4, UINT8 for UINT4, else itself."""
        return DataType(self.dtype.name.upper())

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self.startswith("FLOAT")

    @property
    def is_signed(self) -> bool:
        """Whether elements can be negative."""
        return not self.startswith("UINT")

    @property
    def minimum(self) -> float | int:
        """Lowest finite value, -65504 for FLOAT16."""
        return _ends(self)[0]

    @property
    def maximum(self) -> float | int:
        """Highest finite value, 65504 for FLOAT16."""
        return _ends(self)[1]


@cache
def _bits(data_type: DataType) -> int:
    return int("".join(filter(str.isdigit, data_type)))


@cache
def _ends(data_type: DataType) -> tuple[float | int, float | int]:
    if data_type.is_float:
        limits = np.finfo(data_type.dtype)
        return float(limits.min), float(limits.max)
    bits, signed = data_type.bits, data_type.is_signed
    return -(1 << (bits - 1)) if signed else 0, (1 << (bits - signed)) - 1


@cache
def _dtype(data_type: DataType) -> np.dtype[Any]:
    if data_type.bits == 4:
        return np.dtype(np.int8 if data_type.is_signed else np.uint8)
    return np.dtype(data_type.lower())


def bits_of(array: Array) -> Array:
    """Return the bits of each element, such as UINT32 for FLOAT32, to compare NaNs."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)
