"""Fetch the releases of DirectML that the lab can run, as `versions.toml` lists them."""

from __future__ import annotations

import datetime
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from winelab.build import verified
from winelab.errors import LabError
from winelab.recipe import FOLDER, cache_directory
from winelab.tree import windows

__all__ = [
    "INSIDE",
    "Release",
    "chosen",
    "download",
    "download_wheel",
    "fetch",
    "library",
    "releases",
    "releases_directory",
]

INSIDE: Final = "/directml"
"""Where the lab sees the folder of releases, read-only."""

_USUAL_MEMBER: Final = "onnxruntime/capi/DirectML.dll"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of DirectML; `versions.toml` explains its fields.

    Attributes:
        version: the version of DirectML.dll.
        wheel: the file on PyPI that has DirectML.dll in it.
        wheel_sha256: the SHA-256 of the wheel.
        sha256: the SHA-256 of DirectML.dll.
        date: when the package was built.
        member: how the library's path in the wheel ends.
    """

    version: str
    wheel: str
    wheel_sha256: str
    sha256: str
    date: datetime.date
    member: str = _USUAL_MEMBER

    @property
    def package(self) -> str:
        """The package with its version, such as `onnxruntime-directml 1.24.4`."""
        name, version = self.wheel.split("-")[:2]
        return f"{name.replace('_', '-')} {version}"

    @property
    def file(self) -> Path:
        """Where the library is stored once it is fetched."""
        return releases_directory() / self.version / "DirectML.dll"


def releases(folder: Path = FOLDER) -> list[Release]:
    """Return the releases, the oldest first."""
    data = tomllib.loads((folder / "versions.toml").read_text("utf-8"))
    return [Release(**release) for release in data["release"]]


def chosen(versions: Sequence[str]) -> list[Release]:
    """Return the releases of these versions, or all releases if none are named.

    Raises:
        LabError: there is no such version.
    """
    known = {release.version: release for release in releases()}
    for version in versions:
        if version not in known:
            raise LabError(f"there is no DirectML {version}; the versions are {', '.join(known)}")
    return [known[version] for version in versions or known]


def releases_directory() -> Path:
    """Return the directory that holds the libraries, for all labs."""
    return cache_directory() / "directml"


def library(version: str) -> str:
    """Return the path of a version's library inside the lab.

    Raises:
        LabError: there is no such version, or its library was not fetched.
    """
    [release] = chosen([version])
    if not release.file.is_file():
        command = f"python3 lab/lab.py versions {version}"
        raise LabError(f"DirectML {version} was not fetched; fetch it with: {command}")
    return windows(f"{INSIDE}/{version}/DirectML.dll")


def fetch(release: Release, download_with: Callable[[Release, Path], None] | None = None) -> bool:
    """Fetch a release unless it is there already; return whether it had to be fetched.

    Args:
        release: the release.
        download_with: puts the wheel of the release into a folder; None for `download`.

    Raises:
        LabError: the release cannot be fetched, or a file has another SHA-256.
    """
    if release.file.is_file():
        verified(release.file.read_bytes(), release.sha256, str(release.file))
        return False
    with tempfile.TemporaryDirectory(prefix="directml-") as name:
        folder = Path(name)
        (download_with or download)(release, folder)
        content = _unpacked(release, folder / release.wheel)
    release.file.parent.mkdir(parents=True, exist_ok=True)
    # A file gets its final name when it is complete.
    unfinished = release.file.with_suffix(f".{os.getpid()}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(release.file)
    return True


def _unpacked(release: Release, wheel: Path) -> bytes:
    try:
        packed = wheel.read_bytes()
    except OSError as error:
        raise LabError(f"{wheel} could not be downloaded: {error.strerror}") from error
    verified(packed, release.wheel_sha256, release.wheel)
    with zipfile.ZipFile(wheel) as archive:
        # In older wheels the package lies in a separate folder, NAME.data/purelib.
        [member] = [name for name in archive.namelist() if name.endswith(release.member)]
        return verified(archive.read(member), release.sha256, member)


def download(release: Release, folder: Path) -> None:
    """Put the wheel of a release into a folder, with pip.

    Raises:
        LabError: pip is missing, or fails.
    """
    download_wheel(release.wheel, release.wheel_sha256, folder)


def download_wheel(wheel: str, sha256: str, folder: Path, python: str = "") -> None:
    """Put a wheel of PyPI into a folder, with pip.

    Args:
        wheel: the name of the file.
        sha256: the SHA-256 of the file.
        folder: the folder.
        python: the version of Python to download for, such as 311; by default that in the name.

    Raises:
        LabError: pip is missing, or fails.
    """
    name, version, own = wheel.split("-")[:3]
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else ["pip3"]
    if shutil.which(pip[0]) is None:
        raise LabError("missing on this machine: pip; on Debian: apt-get install python3-pip")
    command = [
        *pip,
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--platform",
        "win_amd64",
        "--python-version",
        python or own[2:],
        "--dest",
        str(folder),
        "--requirement",
        str(requirements),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{wheel} could not be downloaded:\n{done.stderr.strip()}")
