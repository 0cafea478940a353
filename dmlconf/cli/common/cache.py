"""Find or turn off the cache folder, which keeps what takes long to compute."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dmlconf.documents.store import Entries, Store
from dmlconf.resources import checked_archive

if TYPE_CHECKING:
    from dmlconf.judging.figure_cache import FigureCache

__all__ = ["VARIABLE", "checked_files", "figure_cache", "figure_folder", "turn_off", "user_store"]

VARIABLE: Final = "DMLCONF_CACHE"
"""The environment variable that names another cache folder; `off` turns the cache off."""

_OFF: Final = "off"

_FEWEST_CASES: Final = 20
"""Runs of fewer cases cache no figures: comparing is as quick as reading the cache."""

_MOST_FIGURE_BYTES: Final = 1 << 27
"""The most bytes of cached figures that `Store.prune` leaves; 65,707 cases take 49 MB."""


def user_store() -> Store | None:
    """Return the store in the cache folder.

    None if the cache is off, or if the user names no folder and the system's cache folder is
    unknown or relative.
    """
    named = os.environ.get(VARIABLE)
    if named == _OFF:
        return None
    if named:
        return Store(Path(named))
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("dmlconf", appauthor=False)
    except RuntimeError:  # Before version 4.14, platformdirs returned `~/...` instead.
        return None
    return Store(folder) if folder.is_absolute() else None


def checked_files() -> Entries | None:
    """Return the records of checked case files, dmlconf's and the user's; None without either."""
    archive = checked_archive()
    if archive is None:
        return user_store()
    from dmlconf.documents.archive import Archive  # Only a wheel has one.

    return Archive(archive, user_store())


def figure_cache(cases: int) -> FigureCache | None:
    """Return the cache of figures for a run; None if it is off or the run has under 20 cases."""
    store = user_store()
    if store is None or cases < _FEWEST_CASES:
        return None
    from dmlconf.judging.figure_cache import FigureCache

    return FigureCache(Store(figure_folder(store), _MOST_FIGURE_BYTES))


def figure_folder(store: Store) -> Path:
    """Return the folder of cached figures."""
    return store.folder / "figures"


def turn_off() -> None:
    """Use no cache folder in this process from now on, and in those that it then starts."""
    os.environ[VARIABLE] = _OFF
