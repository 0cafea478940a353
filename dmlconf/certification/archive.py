"""The zip archive of a certificate, which is accepted in one form only.

Zip tools can see different contents in one file if two members have the same name, if bytes lie
outside of members, or if a local header differs from the directory. So each header must be the one
that follows from the directory, and no other bytes are allowed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dmlconf.certification.errors import CertificationError, RefusedError
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.recognition import CERTIFICATE, recognised

__all__ = ["MOST_BYTES", "Archive", "archive_bytes", "read_archive"]

MOST_BYTES: Final = 100_000_000
"""The most bytes of a certificate's file."""

_MIB: Final = 1 << 20

_LIMITS: Final[Mapping[str, int]] = {
    "attestation.json": 1 * _MIB,
    "signers.pem": 1 * _MIB,
    "run.jsonl": 96 * _MIB,
    "outcomes.jsonl": 64 * _MIB,
    "outputs.bin": 192 * _MIB,
    "waivers.yaml": 4 * _MIB,
    "substrate.yaml": 1 * _MIB,
    "statement.yaml": 1 * _MIB,
}
"""The members in their order, each with its maximum size in bytes."""

_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END: Final = struct.Struct("<4sHHHHIIH")
_VERSION: Final = 20
_UNIX: Final = 3 << 8
_MODE: Final = 0o100644 << 16
_DATE: Final = 0x21
"""The first of January 1980, the earliest date in zip."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The members of a certificate.

    Attributes:
        members: the contents by name.
        damaged: names of the members whose checksum does not match the content.
    """

    members: Mapping[str, bytes]
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member as the directory describes it."""

    name: str
    checksum: int
    compressed: int
    size: int

    def local(self) -> bytes:
        return _LOCAL.pack(b"PK\3\4", *self._common()) + self.name.encode()

    def central(self, at: int) -> bytes:
        head, tail = (b"PK\1\2", _UNIX | _VERSION), (0, 0, 0, _MODE, at)
        return _CENTRAL.pack(*head, *self._common(), *tail) + self.name.encode()

    def _common(self) -> tuple[int, ...]:
        sizes = self.checksum, self.compressed, self.size, len(self.name.encode()), 0
        return _VERSION, 0, zlib.DEFLATED, 0, _DATE, *sizes


def archive_bytes(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a certificate's file.

    Args:
        members: the contents by name; names that `_LIMITS` lacks are left out.

    Raises:
        CertificationError: the file or one of its members would be too large.
    """
    entries, contents = [], []
    for name in _LIMITS:
        if name not in members:
            continue
        content = members[name]
        if len(content) > _LIMITS[name]:
            raise CertificationError(
                f"the certificate would hold {len(content):,} bytes of {name}; "
                f"{_LIMITS[name]:,} are the most"
            )
        deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = deflate.compress(content) + deflate.flush()
        entries.append(_Entry(name, zlib.crc32(content), len(packed), len(content)))
        contents.append(packed)
    bodies = [entry.local() + packed for entry, packed in zip(entries, contents, strict=True)]
    whole = b"".join(bodies) + _directory(entries)
    if len(whole) > MOST_BYTES:
        raise CertificationError(
            f"the certificate would have {len(whole):,} bytes; {MOST_BYTES:,} are the most"
        )
    return whole


def _directory(entries: Sequence[_Entry]) -> bytes:
    at, records = 0, []
    for entry in entries:
        records.append(entry.central(at))
        at += len(entry.local()) + entry.compressed
    central = b"".join(records)
    count = len(entries)
    return central + _END.pack(b"PK\5\6", 0, 0, count, count, len(central), at, 0)


def read_archive(path: Path, required: Sequence[str]) -> Archive:
    """Return the members of a certificate's file.

    Raises:
        RefusedError: the file cannot be read, is not an archive in the form of a certificate, or
            lacks a `required` member.
    """
    try:
        content = read_bytes(path, MOST_BYTES)
    except UnreadableFileError as error:
        raise RefusedError(str(error), unread=not error.too_large) from error
    try:
        entries = list(_entries(content))
    except RefusedError as error:
        kind = recognised(path) if content else "empty"
        if kind in (None, CERTIFICATE):
            raise
        raise RefusedError(f"not a certificate: it is {kind}") from error
    missing = [name for name in required if name not in {entry.name for entry in entries}]
    if missing:
        raise RefusedError(f"not a certificate: it lacks {', '.join(missing)}")
    members, damaged, at = {}, [], 0
    for entry in entries:
        header = entry.local()
        if content[at : at + len(header)] != header:
            raise RefusedError(f"the header of {entry.name} differs from the archive's directory")
        at += len(header)
        members[entry.name] = _inflated(entry, content[at : at + entry.compressed])
        at += entry.compressed
        if zlib.crc32(members[entry.name]) != entry.checksum:
            damaged.append(entry.name)
    return Archive(members, tuple(damaged))


def _entries(content: bytes) -> Iterator[_Entry]:
    """Yield the entries of the directory, after checking that its form is canonical."""
    if len(content) < _END.size or content[-_END.size :][:4] != b"PK\5\6":
        raise RefusedError(
            "not a certificate: it does not end like a zip archive without a comment"
        )
    *_, count, size, at, _ = _END.unpack(content[-_END.size :])
    start = len(content) - _END.size - size
    if count > len(_LIMITS) or start < 0 or at != start:
        raise RefusedError("not a certificate: the archive's directory is not where it must be")
    entries, offset, known = [], start, list(_LIMITS)
    for _ in range(count):
        entry, offset = _entry(content, offset)
        if entry.name not in known:
            raise RefusedError(
                f"not a certificate: its member {entry.name!r} is unknown, duplicate or misplaced"
            )
        del known[: known.index(entry.name) + 1]
        if entry.size > _LIMITS[entry.name]:
            raise RefusedError(
                f"{entry.name} has {entry.size:,} bytes; {_LIMITS[entry.name]:,} are the most"
            )
        entries.append(entry)
    if content[start:] != _directory(entries):
        raise RefusedError("not a certificate: the archive was written by another program")
    yield from entries


def _entry(content: bytes, offset: int) -> tuple[_Entry, int]:
    try:
        fields = _CENTRAL.unpack_from(content, offset)
    except struct.error as error:
        raise RefusedError("not a certificate: the archive's directory is truncated") from error
    checksum, compressed, size, length = fields[7:11]
    offset += _CENTRAL.size
    name = content[offset : offset + length].decode("ascii", "replace")
    return _Entry(name, checksum, compressed, size), offset + length


def _inflated(entry: _Entry, packed: bytes) -> bytes:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(packed, entry.size + 1)
        rest = not inflate.eof or inflate.unused_data
    except zlib.error as error:
        raise RefusedError(f"{entry.name} is damaged: {error}") from error
    if rest or len(content) != entry.size:
        raise RefusedError(f"{entry.name} is damaged: it does not have the size in the directory")
    return content
