"""Build libraries that stand in for those of WSL 2, and an application that uses them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

TORCH_DIRECTML: Final = (
    "torch-directml==0.2.5.dev240914",
    "30e29872f4d6059dd784897fa2df0cddb80f3874ed4f0860758790286e95a823",
)
"""A wheel with Microsoft's libdirectml.so 1.13, and its SHA-256."""

NATIVE: Final = Path(__file__).parent / "native"
DXCORE: Final = Path(__file__).parents[2] / "backends" / "directml" / "native" / "standin.cpp"


@pytest.fixture(scope="session")
def wsl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for WSL's libraries, and two forms of an application.

    application.so is linked with libdirectml.so; late.so opens it when it makes its device.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("the libraries are those of WSL 2")
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("wsl")
    linked = ("-L.", "-ld3d12", "-Wl,-rpath,$ORIGIN")
    for name, source, more in (
        ("libdxcore.so", DXCORE, ()),
        ("libd3d12.so", NATIVE / "d3d12.cpp", (f"-Wl,--version-script,{NATIVE / 'd3d12.map'}",)),
        ("libdirectml.so", NATIVE / "directml.cpp", ()),
        ("application.so", NATIVE / "application.cpp", ("-ldirectml", *linked)),
        ("late.so", NATIVE / "application.cpp", ("-DLATE", *linked)),
    ):
        # Microsoft's libraries, too, bind symbols at once and can be unloaded.
        kind = ("-std=c++17", "-shared", "-fPIC", "-fno-gnu-unique", "-Wl,-z,now")
        named = ("-Wno-non-virtual-dtor", f"-Wl,-soname,{name}")
        subprocess.run(["g++", *kind, *named, "-o", name, source, *more], check=True, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def microsoft(wsl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Microsoft's libdirectml.so, which runs on the stand-in for Direct3D 12."""
    folder = tmp_path_factory.mktemp("microsoft")
    requirement, sha256 = TORCH_DIRECTML
    file = folder / "requirements.txt"
    file.write_text(f"{requirement} --hash=sha256:{sha256}", encoding="utf-8")
    system = ("--python-version", "3.10", "--platform", "manylinux2010_x86_64")
    options = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(file))
    command = (sys.executable, "-m", "pip", "download", "--quiet", *options, *system)
    subprocess.run(command, check=True, cwd=folder)
    [wheel] = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        return Path(archive.extract("torch_directml/libdirectml.so", folder))
