"""The bytes of a DML_SCALAR_UNION."""

from __future__ import annotations

import struct
from typing import Final

from dmlconf.tensors.datatypes import DataType

__all__ = ["scalar_bytes"]

_FORMATS: Final = {DataType.FLOAT64: "<d", DataType.FLOAT32: "<f", DataType.FLOAT16: "<e"}


def scalar_bytes(value: float, type_name: str | int) -> bytes:
    """Return the 8 bytes of a union that holds the value in the data type, padded with zeros.

    For anything that is not a data type, such as UNKNOWN, all bytes are zero.
    """
    if type_name not in tuple(DataType):
        return bytes(8)
    data_type = DataType(type_name)
    if data_type in _FORMATS:
        content = struct.pack(_FORMATS[data_type], value)
    else:
        width = max(1, data_type.bits // 8)
        # A negative step of an unsigned type is its two's complement, as C converts it.
        content = (int(value) & (1 << 8 * width) - 1).to_bytes(width, "little")
    return content.ljust(8, b"\0")
