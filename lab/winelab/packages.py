"""Fetch ONNX Runtime for the lab, for `dmlconf capture` and `-b onnxruntime` there."""

from __future__ import annotations

import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from winelab.build import verified
from winelab.errors import LabError
from winelab.recipe import FOLDER
from winelab.tree import windows
from winelab.versions import INSIDE, download_wheel, releases, releases_directory

__all__ = ["fetch_packages", "packages_directory", "search_path"]

_FOLDER: Final = "packages"
_PYTHON: Final = "311"
"""The version of the lab's Python, without the dot."""


def packages_directory() -> Path:
    """Return the folder of the unpacked packages, for all labs."""
    return releases_directory() / _FOLDER


def search_path() -> str:
    """Return the folder in which programs in the lab find the packages; empty if not fetched."""
    return windows(f"{INSIDE}/{_FOLDER}") if packages_directory().is_dir() else ""


def fetch_packages(fetch: Callable[[str, str, Path], None] | None = None) -> bool:
    """Fetch ONNX Runtime with the newest DirectML, and the wheels that `packages.toml` lists.

    Args:
        fetch: puts a wheel of PyPI, by its name and SHA-256, into a folder; pip by default.

    Returns:
        Whether something had to be fetched.

    Raises:
        LabError: a wheel cannot be fetched, or has another SHA-256.
    """
    target = packages_directory()
    wheels = _wheels()
    if all((target / _installed(wheel)).is_dir() for wheel in wheels):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}-", dir=target.parent) as name:
        folder = Path(name)
        unpacked = folder / "unpacked"
        for wheel, sha256 in wheels.items():
            (fetch or _download)(wheel, sha256, folder)
            _unpack(folder / wheel, sha256, unpacked)
        # The folder gets its name only when it is complete.
        with suppress(FileNotFoundError):
            target.rename(folder / "old")
        try:
            unpacked.rename(target)
        except OSError:
            if not target.is_dir():
                raise  # Else another process was faster.
    return True


def _wheels() -> dict[str, str]:
    """Return the SHA-256 of each wheel, by the name of the wheel."""
    release = releases()[-1]
    others = tomllib.loads((FOLDER / "packages.toml").read_text("utf-8"))["wheels"]
    return {release.wheel: release.wheel_sha256, **others}


def _installed(wheel: str) -> str:
    """Return the folder that an unpacked wheel has: `onnx-1.18.0.dist-info`."""
    return f"{'-'.join(wheel.split('-')[:2])}.dist-info"


def _download(wheel: str, sha256: str, folder: Path) -> None:
    download_wheel(wheel, sha256, folder, _PYTHON)


def _unpack(wheel: Path, sha256: str, folder: Path) -> None:
    try:
        verified(wheel.read_bytes(), sha256, wheel.name)
    except OSError as error:
        raise LabError(f"{wheel.name} could not be downloaded: {error.strerror}") from error
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
