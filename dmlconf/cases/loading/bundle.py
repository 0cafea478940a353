"""Make a wheel's archive of checked case files, which need not be checked again."""

from __future__ import annotations

from typing import Any

from dmlconf.cases.loading.loader import load_suite
from dmlconf.documents.archive import archive_content
from dmlconf.resources import cases_directory

__all__ = ["checked_suite"]


def checked_suite() -> bytes:
    """Return the archive of the bundled suite's checked files.

    Raises:
        InvalidFilesError: a file of the suite is invalid.
    """
    values = _Values()
    load_suite([cases_directory()], store=values)
    return archive_content(values.by_key)


class _Values:
    """A store that keeps values by key in memory."""

    def __init__(self) -> None:
        self.by_key: dict[str, Any] = {}

    def get(self, key: str) -> None:
        """Return None, so that each file is checked."""

    def put(self, key: str, value: Any) -> bool:
        self.by_key[key] = value
        return True

    def prune(self) -> None:
        """Keep everything."""
