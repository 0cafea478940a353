"""Build libraries that stand in for those of WSL 2, and an application that uses them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

NATIVE: Final = Path(__file__).parent / "native"
DXCORE: Final = Path(__file__).parents[2] / "backends" / "directml" / "native" / "standin.cpp"


@pytest.fixture(scope="session")
def wsl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for WSL's libraries, and application.so and late.so.

    The first is linked with libdirectml.so, and the second opens it when it makes its device.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("the libraries are those of WSL 2")
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("wsl")
    linked = ("-L.", "-ld3d12", "-Wl,-rpath,$ORIGIN")
    for name, source, more in (
        ("libdxcore.so", DXCORE, ()),
        ("libd3d12.so", NATIVE / "d3d12.cpp", ()),
        ("libdirectml.so", NATIVE / "directml.cpp", ()),
        ("application.so", NATIVE / "application.cpp", ("-ldirectml", *linked)),
        ("late.so", NATIVE / "application.cpp", ("-DLATE", *linked)),
    ):
        # Microsoft's libraries are bound at once as well, and can be unloaded.
        kind = ("-std=c++17", "-shared", "-fPIC", "-O1", "-fno-gnu-unique", "-Wl,-z,now")
        named = ("-Wno-non-virtual-dtor", f"-Wl,-soname,{name}")
        subprocess.run(["g++", *kind, *named, "-o", name, source, *more], check=True, cwd=folder)
    return folder
