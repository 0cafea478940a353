"""The recipe of the lab, its digest, and in which folder the lab is."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["CHECKOUT", "Lab", "Recipe", "cache_directory", "digest", "this_lab"]

FOLDER: Final = Path(__file__).resolve().parents[1]
CHECKOUT: Final = FOLDER.parent

INGREDIENTS: Final = ("recipe.toml", "launcher.c", "winelab/build.py", "winelab/tree.py")
"""The files that determine the lab's content; if one of them changes, a new lab is built."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the lab is made of; `recipe.toml` explains its fields.

    Attributes:
        debian: the release of Debian, and its packages in the tree that holds Wine.
        python: where Windows CPython comes from.
        directml: where DirectML.dll comes from.
        wheels: SHA-256 of each file from PyPI, by its name.
    """

    debian: Mapping[str, Any]
    python: Mapping[str, Any]
    directml: Mapping[str, Any]
    wheels: Mapping[str, str]

    @classmethod
    def load(cls, folder: Path = FOLDER) -> Recipe:
        """Read the recipe in a folder."""
        return cls(**tomllib.loads((folder / "recipe.toml").read_text("utf-8")))

    def wheel(self, name: str) -> str:
        """Return the file from PyPI of a package, by the name with which the file begins."""
        (file,) = (file for file in self.wheels if file.startswith(f"{name}-"))
        return file

    def libraries(self) -> list[str]:
        """Return the files from PyPI that are installed as Python packages."""
        apart = {self.wheel(self.python["wheel"]), self.wheel(self.directml["wheel"])}
        return [file for file in self.wheels if file not in apart]

    def requirements(self) -> str:
        """Return the files from PyPI as a requirements file for pip, which checks their digests."""
        lines = []
        for file, sha256 in self.wheels.items():
            name, version = file.split("-")[:2]
            lines.append(f"{name}=={version} --hash=sha256:{sha256}\n")
        return "".join(lines)


@dataclass(frozen=True, slots=True)
class Lab:
    """The location of a lab, built or not.

    Attributes:
        path: its directory, named by the digest of its recipe.
    """

    path: Path

    @property
    def tree(self) -> Path:
        """The Debian tree that holds everything."""
        return self.path / "tree"

    @property
    def mount_point(self) -> Path:
        """An empty directory, in which each run mounts a writable view of the tree (`session`)."""
        return self.path / "view"

    @property
    def unfinished(self) -> Path:
        """Where the lab is while it is being built."""
        return self.path.with_suffix(".unfinished")

    @property
    def build_log(self) -> Path:
        """The output of the tools that built the lab."""
        return self.path.with_suffix(".log")

    @property
    def packages(self) -> Path:
        """The file that lists the tree's Debian packages and their versions."""
        return self.path / "packages.txt"

    def is_built(self) -> bool:
        """Whether the lab can be used. A folder gets this name only when the lab is complete."""
        return self.tree.is_dir()


def digest(folder: Path = FOLDER) -> str:
    """Return the digest of the `INGREDIENTS`: 16 hexadecimal digits."""
    whole = hashlib.sha256()
    for name in INGREDIENTS:
        content = (folder / name).read_bytes()
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()[:16]


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory that holds the labs: DMLCONF_LAB, or one in the user's cache."""
    if chosen := environment.get("DMLCONF_LAB"):
        return Path(chosen).expanduser().absolute()
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "~")) / ".cache"
    return Path(cache).expanduser().absolute() / "dmlconf" / "lab"


def this_lab() -> Lab:
    """Return the lab of this checkout's recipe."""
    return Lab(cache_directory() / digest())
