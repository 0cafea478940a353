"""Change members of certificates, and pack the certificates again."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping
from random import Random

from tests.certification.forging import Forgery, taken_apart
from tests.hostile.mutation import mutated_value

__all__ = ["changed_lines", "json_bytes", "packed_zeros", "restated_member", "zipped"]


def json_bytes(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def changed_lines(
    random: Random, content: bytes, name: str, restated: Callable[[Forgery, bytes, str], bytes]
) -> bytes:
    """Change up to three lines of a member, and pack the certificate with `restated`."""
    forgery = taken_apart(content)
    lines = forgery.members()[name].splitlines(keepends=True)
    for _ in range(random.choice((1, 1, 3))):
        place = random.randrange(len(lines))
        record = mutated_value(random, json.loads(lines[place]), random.choice((1, 2)))
        lines[place] = json_bytes(record) + b"\n"
    return restated(forgery, b"".join(lines), name)


def restated_member(forgery: Forgery, changed: bytes, name: str) -> bytes:
    """Pack a certificate with a changed member, right digests and the old signature."""
    return forgery.content(None, {**forgery.members(), name: changed})


def packed_zeros(size: int) -> bytes:
    """Return `size` bytes of zeros, a multiple of 2^20, as a deflate stream."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    parts = [deflate.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join(parts) + deflate.flush()


def zipped(
    members: Mapping[str, bytes], raw: Mapping[str, tuple[bytes, int, int]] | None = None
) -> bytes:
    """Return an archive with dmlconf's layout.

    `raw` has for some members packed bytes, a size and a CRC, which may contradict each other.
    """
    parts, central, at = [], [], 0
    for name, content in members.items():
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = deflate.compress(content) + deflate.flush()
        size, checksum = len(content), zlib.crc32(content)
        if raw and name in raw:
            packed, size, checksum = raw[name]
        encoded = name.encode()
        fields = checksum, len(packed), size, len(encoded), 0
        local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 8, 0, 33, *fields) + encoded
        central.append(
            struct.pack(
                "<4sHHHHHHIIIHHHHHII",
                b"PK\1\2",
                788,
                20,
                0,
                8,
                0,
                33,
                *fields,
                0,
                0,
                0,
                0o100644 << 16,
                at,
            )
            + encoded
        )
        parts.append(local + packed)
        at += len(local) + len(packed)
    directory = b"".join(central)
    end = struct.pack(
        "<4sHHHHIIH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), at, 0
    )
    return b"".join(parts) + directory + end
