"""The cache of results that are expensive to recompute, kept between commands unless turned off."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dmlconf.documents.archive import Archive
from dmlconf.documents.store import Entries, Store
from dmlconf.resources import checked_archive

__all__ = ["VARIABLE", "checked_files", "turn_off", "user_store"]

VARIABLE: Final = "DMLCONF_CACHE"
"""The environment variable that names another folder, or `off`."""

_OFF: Final = "off"


def user_store() -> Store | None:
    """Return the store in the user's cache folder; None if it is off, or there is no such folder.

    An account that is not in the list of users, and whose environment names no home, has none.
    """
    named = os.environ.get(VARIABLE)
    if named == _OFF:
        return None
    if named:
        return Store(Path(named))
    from platformdirs import user_cache_path  # Not needed if the variable is set.

    try:
        folder = user_cache_path("dmlconf", appauthor=False)
    except RuntimeError:  # From platformdirs 4.14 on; earlier versions keep the `~`.
        return None
    return Store(folder) if folder.is_absolute() else None


def checked_files() -> Entries | None:
    """Return the records of checked files: those shipped with dmlconf first, then the user's."""
    archive = checked_archive()
    return user_store() if archive is None else Archive(archive, user_store())


def turn_off() -> None:
    """Use no cache folder, in this process and those it starts."""
    os.environ[VARIABLE] = _OFF
