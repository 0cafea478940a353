"""Build libraries that stand in for DirectML, Direct3D 12 and DXCore on Linux, with g++."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parent / "native" / "standin.cpp"


@pytest.fixture(scope="session")
def wsl_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for WSL's libraries, and with libother.so, which is not DirectML."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the System V side of the binding is for Linux")
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("wsl")
    for name, more in (
        ("libdxcore.so", ()),
        ("libd3d12.so", ()),
        ("libdirectml.so", ("-DWITH_DIRECTML",)),
        ("libother.so", ()),
    ):
        subprocess.run(
            [
                compiler,
                "-std=c++17",
                "-shared",
                "-fPIC",
                "-O1",
                "-Wno-non-virtual-dtor",
                *more,
                f"-Wl,-soname,standin-{name}",
                "-o",
                str(folder / name),
                str(SOURCE),
            ],
            check=True,
        )
    return folder
