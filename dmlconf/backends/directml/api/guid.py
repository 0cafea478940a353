"""GUIDs, which name interfaces of COM and attributes of DXCore."""

from __future__ import annotations

import ctypes
from uuid import UUID

__all__ = ["GUID"]


class GUID(ctypes.Structure):
    """A `GUID` of the Windows headers."""

    _fields_ = (
        ("Data1", ctypes.c_uint32),
        ("Data2", ctypes.c_uint16),
        ("Data3", ctypes.c_uint16),
        ("Data4", ctypes.c_uint8 * 8),
    )

    @classmethod
    def parse(cls, text: str) -> GUID:
        """Return the GUID of a text such as `8efb471d-616c-4f49-90f7-127bb763fa51`.

        Raises:
            ValueError: the text is not a GUID.
        """
        return cls.from_buffer_copy(UUID(text).bytes_le)

    def __str__(self) -> str:
        return str(UUID(bytes_le=bytes(self)))
