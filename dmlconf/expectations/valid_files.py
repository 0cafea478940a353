"""Remember case files without problems, so that `validate` skips them.

The key of a file is a digest of its name, its folder's name, its content and everything else that
the check depends on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dmlconf.documents.store import Entries
from dmlconf.expectations.checked import fingerprint
from dmlconf.workers.memory import LIMIT_VARIABLE

__all__ = ["ValidFiles"]


@dataclass(frozen=True, slots=True)
class ValidFiles:
    """The files without problems and warnings; without a store, none is remembered."""

    store: Entries | None

    def has(self, path: Path, content: bytes) -> bool:
        """Return whether a file with this name, folder's name and content is known to be valid."""
        return self.store is not None and self.store.get(_key(path, content)) == []

    def add(self, path: Path) -> None:
        """Remember that a file is valid, if no other file can hold data of its cases.

        Raises:
            OSError: the file cannot be read.
        """
        content = path.read_bytes()
        if self.store is not None and b"file" not in content and not self.has(path, content):
            self.store.put(_key(path, content), [])


def _key(path: Path, content: bytes) -> str:
    """Return the key of a file; it includes the memory limit, which decides what can be judged."""
    path = path.absolute()
    about = f"valid\0{path.parent.name}/{path.name}\0{os.environ.get(LIMIT_VARIABLE)}\0"
    return sha256(fingerprint() + about.encode("utf-8", "surrogateescape") + content).hexdigest()
