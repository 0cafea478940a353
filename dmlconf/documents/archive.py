"""Archives: read-only files of many entries, such as the checked case files in a wheel.

The first line is JSON, `{"form": 1, "entries": {KEY: [OFFSET, BYTES]}}`. Offsets count from the
end of that line. An entry is what `dmlconf.documents.store.entry_content` returns, compressed by
zlib.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.documents.store import DIGEST_BYTES, LARGEST_ENTRY, Store, entry_content, entry_value

__all__ = ["Archive", "archive_content"]

_FORM: Final = 1
_LONGEST_INDEX: Final = 1 << 22
"""The most bytes of the first line of an archive."""
_LARGEST: Final = LARGEST_ENTRY + DIGEST_BYTES
_DAMAGES: Final = (
    TypeError,
    ValueError,
    LookupError,
    zlib.error,
    RecursionError,
    MemoryError,
    OverflowError,
)
"""What reading a damaged archive may raise."""


class Archive:
    """The entries of a file; keys that the file lacks are looked up in `store`, if there is one.

    A missing file, or one with a damaged first line, has no entries. Damaged entries are missing,
    too.
    """

    def __init__(self, path: Path, store: Store | None = None) -> None:
        self._path = path
        self._store = store
        self._index: Mapping[str, Any] | None = None
        self._first = 0

    def get(self, key: str) -> Any:
        """Return the value of a key in the file, else in the store, else None."""
        value = self._own(key)
        return self._store.get(key) if value is None and self._store is not None else value

    def put(self, key: str, value: Any) -> bool:
        """Keep a value in the store, if there is one; return False if the value is too large."""
        return self._store is None or self._store.put(key, value)

    def prune(self) -> None:
        """Remove the oldest entries beyond the limit of the store."""
        if self._store is not None:
            self._store.prune()

    def _own(self, key: str) -> Any:
        try:
            if self._index is None:
                self._read_index()
            if self._index is None or key not in self._index:
                return None
            offset, size = self._index[key]
            with self._path.open("rb") as stream:
                stream.seek(self._first + offset)
                compressed = stream.read(min(size, LARGEST_ENTRY))
            return entry_value(zlib.decompressobj().decompress(compressed, _LARGEST))
        except (OSError, *_DAMAGES):
            return None

    def _read_index(self) -> None:
        self._index = {}
        with self._path.open("rb") as stream:
            line = stream.readline(_LONGEST_INDEX)
        header = json.loads(line)
        if header == {"form": _FORM, "entries": header["entries"]}:
            self._index = dict(header["entries"])
            self._first = len(line)


def archive_content(values: Mapping[str, Any]) -> bytes:
    """Return the bytes of an archive; the order of the keys does not matter.

    A value whose JSON is larger than `LARGEST_ENTRY` is left out.
    """
    index: dict[str, tuple[int, int]] = {}
    entries = b""
    for key, value in sorted(values.items()):
        content = entry_content(value)
        if content is not None:
            compressed = zlib.compress(content, 9)
            index[key] = (len(entries), len(compressed))
            entries += compressed
    header = json.dumps({"form": _FORM, "entries": index}, separators=(",", ":"))
    return header.encode() + b"\n" + entries
