"""The bytes of a DML_SCALAR_UNION, and the number that they hold."""

from __future__ import annotations

import struct
from typing import Final

from dmlconf.tensors.datatypes import DataType

__all__ = ["scalar_bytes", "scalar_value"]

_FORMATS: Final = {DataType.FLOAT64: "<d", DataType.FLOAT32: "<f", DataType.FLOAT16: "<e"}


def scalar_bytes(value: float, type_name: str | int) -> bytes:
    """Return the 8 bytes of a union that holds the value in a data type, padded with zeros.

    If `type_name` is no data type, but UNKNOWN or a number, all bytes are zero. Integer types drop
    the value's fraction, and bits beyond the type's bytes: 300 in UINT8 gives 44.

    Raises:
        OverflowError: the value is finite and beyond a floating-point type, or infinite and the
            data type an integer type.
        ValueError: the value is NaN and the data type an integer type.
    """
    if type_name not in tuple(DataType):
        return bytes(8)
    data_type = DataType(type_name)
    if data_type in _FORMATS:
        content = struct.pack(_FORMATS[data_type], float(value))
    else:
        width = max(1, data_type.bits // 8)
        # Negative numbers become their two's complement, as in C.
        content = (int(value) & (1 << 8 * width) - 1).to_bytes(width, "little")
    return content.ljust(8, b"\0")


def scalar_value(content: bytes, data_type: DataType) -> float:
    """Return the number at the beginning of a union, for integer types an int.

    Numbers of 4-bit types take the whole first byte.
    """
    if data_type in _FORMATS:
        (number,) = struct.unpack_from(_FORMATS[data_type], content)
        return float(number)
    width = max(1, data_type.bits // 8)
    return int.from_bytes(content[:width], "little", signed=data_type.is_signed)
