"""Read members of untrusted zip archives, with a limit on their uncompressed size."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from dmlconf.documents.files import open_regular
from dmlconf.documents.problems import printable

__all__ = ["DamagedArchiveError", "ZipMembers", "opened_archive"]

_BLOCK_BYTES: Final = 1 << 20

_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_DAMAGES: Final = (
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,  # An offset in the archive is negative.
    OverflowError,
    RuntimeError,  # A member is encrypted, or uses a method that is not implemented.
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What `zipfile` and the decompressors raise for damaged archives."""

_SIGNATURE: Final = b"PK"
"""The first bytes of archives."""
_SHOWN_BYTES: Final = 16
"""How many bytes of another file a message shows."""
_MOST_NAMES: Final = 4
"""How many names of other members a message shows."""


class DamagedArchiveError(Exception):
    """An archive or a member that cannot be read; the message says why."""


class ZipMembers:
    """The members of an open archive, each of at most `largest` uncompressed bytes.

    `opened_archive` turns errors of `zipfile` in these methods into a `DamagedArchiveError`.
    """

    def __init__(self, archive: zipfile.ZipFile, largest: int) -> None:
        self._archive, self._largest = archive, largest

    @property
    def names(self) -> Sequence[str]:
        """The names of the members, in the order of the archive."""
        return self._archive.namelist()

    def require(self, names: Collection[str]) -> None:
        """Raise `DamagedArchiveError` unless the archive has exactly these members."""
        if sorted(self.names) != sorted(names):
            members = ", ".join(map(printable, self.names[:_MOST_NAMES])) or "nothing"
            more = ", ..." if len(self.names) > _MOST_NAMES else ""
            wanted = ", ".join(names)
            raise DamagedArchiveError(f"it does not consist of {wanted}, but of {members}{more}")

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises:
            DamagedArchiveError: as for `beginning`.
        """
        content = self.beginning(name, self._largest + 1)
        if len(content) > self._largest:
            raise DamagedArchiveError(f"{name} is larger than the limit of {self._largest:,} bytes")
        return content

    def beginning(self, name: str, size: int) -> bytes:
        """Return the first `size` bytes of a member; all, if it has fewer.

        Raises:
            DamagedArchiveError: there is no such member, or it is damaged, too large, or uses an
                unsupported compression method.
        """
        info = self._archive.getinfo(name)
        if info.compress_type not in _METHODS:
            raise DamagedArchiveError(f"{name} uses an unsupported compression method")
        if info.file_size > self._largest:
            raise DamagedArchiveError(f"{name} is larger than the limit of {self._largest:,} bytes")
        blocks = []
        with self._archive.open(info) as member:
            # `read` without a size decompresses everything, whatever size the archive states.
            while size > 0 and (block := member.read(min(size, _BLOCK_BYTES))):
                blocks.append(block)
                size -= len(block)
        return b"".join(blocks)


@contextmanager
def opened_archive(path: Path, largest: int) -> Iterator[ZipMembers]:
    """Open an archive whose members have at most `largest` uncompressed bytes each.

    Raises:
        DamagedArchiveError: opening the archive, or the body of the `with` statement, raised an
            error in `_DAMAGES`.
        UnreadableFileError: the path cannot be opened, or is not a regular file.
    """
    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield ZipMembers(archive, largest)
        except _DAMAGES as error:
            raise DamagedArchiveError(_damage(stream, error)) from error


def _damage(stream: BinaryIO, error: Exception) -> str:
    """Return what is wrong with an archive whose reading caused an error."""
    stream.seek(0)
    beginning = stream.read(_SHOWN_BYTES)
    if not beginning:
        return "it is empty"
    if not beginning.startswith(_SIGNATURE):
        return f"it is not a zip archive, since it begins with {beginning!r}"
    if isinstance(error, zipfile.BadZipFile) and not zipfile.is_zipfile(stream):
        return "it is a zip archive without its end, perhaps a part of one"
    if isinstance(error, (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError)):
        return f"it is a damaged zip archive: {error}"
    return f"{type(error).__name__}: {error}"
