"""Python packages that use DirectML, for `dmlconf capture` in the lab."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from winelab.build import verified
from winelab.errors import LabError
from winelab.tree import windows
from winelab.versions import INSIDE, Release, download, releases, releases_directory

__all__ = ["fetch_packages", "packages_directory", "search_path"]

_FOLDER: Final = "packages"


def packages_directory() -> Path:
    """Return the folder of the unpacked packages, for all labs."""
    return releases_directory() / _FOLDER


def search_path() -> str:
    """Return where programs in the lab find the packages; empty if they were not fetched."""
    return windows(f"{INSIDE}/{_FOLDER}") if packages_directory().is_dir() else ""


def fetch_packages(fetch: Callable[[Release, Path], None] = download) -> bool:
    """Fetch ONNX Runtime with the newest DirectML; return whether it had to be fetched.

    Args:
        fetch: puts the wheel of a release into a folder.

    Raises:
        LabError: it cannot be fetched, or is not the pinned file.
    """
    target = packages_directory()
    if target.is_dir():
        return False
    release = releases()[-1]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}-", dir=target.parent) as name:
        folder = Path(name)
        fetch(release, folder)
        wheel = folder / release.wheel
        try:
            verified(wheel.read_bytes(), release.wheel_sha256, release.wheel)
        except OSError as error:
            reason = f"{release.wheel} could not be downloaded: {error.strerror}"
            raise LabError(reason) from error
        unpacked = folder / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        # It gets its name when it is complete.
        shutil.move(unpacked, target)
    return True
