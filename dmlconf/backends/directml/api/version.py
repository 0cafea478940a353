"""The version of DirectML in a library's file."""

from __future__ import annotations

import re
import struct
from typing import Final

__all__ = ["native_version"]

_SIGNATURE: Final = b"\xbd\x04\xef\xfe\x00\x00\x01\x00"
_TEXT: Final = re.compile(rb"DirectML[ /](\d+\.\d+\.\d+)")
_ELF: Final = b"\x7fELF"

_MARKS: Final = (
    ("1.15.1", b"DML_OPERATOR_FOLD"),
    ("1.14.1", b"DML_OPERATOR_QUANTIZE"),
    ("1.13.1", b"DML_OPERATOR_LP_POOLING1"),
    ("1.12.0", b"DML_OPERATOR_MULTIHEAD_ATTENTION"),
    ("1.10.1", b"ResampleLinear_float32_native_256_1_8"),
    ("1.9.1", b"OneHot_256_uint32_native_uint64_emulated_4"),
    ("1.9.0", b"DML_OPERATOR_RESAMPLE2"),
)
"""Names of operators and kernels, the newest first, each with the first release of DirectML.dll
that has it. Measured on the releases 1.8.0 to 1.15.4: each has all marks of earlier ones."""


def native_version(content: bytes) -> str:
    """Return the version of a library's file; `unknown` if it cannot be determined.

    DirectML.dll has it in its resources. libdirectml.so does not contain it: there it is the latest
    release of DirectML.dll whose operators and kernels the file has.

    Args:
        content: the bytes of the file.
    """
    place = content.find(_SIGNATURE)
    if place >= 0 and len(content) >= place + 16:
        high, low = struct.unpack_from("<II", content, place + 8)
        parts = (high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF)
        return ".".join(map(str, parts[: 4 if parts[3] else 3]))
    match = _TEXT.search(content)
    if match:
        return match[1].decode("ascii")
    if content.startswith(_ELF):
        marked = (version for version, name in _MARKS if b"\0" + name + b"\0" in content)
        return next(marked, "unknown")
    return "unknown"
