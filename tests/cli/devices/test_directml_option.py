"""`--directml FILE` ends with a message and exit code 2 or 4 if FILE cannot be used.

The tested code is in `dmlconf/cli/options/backend.py` and
`dmlconf/backends/directml/api/library.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import dmlconf, dmlconf_here, write

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the libraries are those of WSL 2")

MAKE_DEVICE = "int DMLCreateDevice1(void) { return 1; }"
"""C source of a library that passes for DirectML."""

NOTHING = "int nothing(void) { return 1; }"
"""C source of a library that is not DirectML."""


@pytest.fixture(scope="session")
def wsl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libdxcore.so and libd3d12.so, which lack the functions of the real ones."""
    folder = tmp_path_factory.mktemp("wsl")
    dxcore = compile_library(NOTHING, folder / "libdxcore.so")
    shutil.copy(dxcore, folder / "libd3d12.so")
    return folder


def compile_library(source: str, path: Path) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(path), "-"]
    subprocess.run(command, input=source, encoding="utf-8", check=True)
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "no backend is directml; add --backend directml"),
        (["run", "-b", "numpy", "-b", "faulty:slow"], "no backend is directml"),
        (["record", "-b", "numpy", "-o", "x.dmlrec"], "no backend is directml"),
        (["run", "-b", "directml:path=other.dll"], "each directml backend has its own path="),
    ],
)
def test_the_exit_code_is_2_if_nothing_uses_the_file(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = dmlconf_here(tmp_path, *arguments, "--directml", "DirectML.dll")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--directml: {message}" in done.stderr


def test_a_path_with_a_comma_is_refused(
    tmp_path: Path,
) -> None:
    done = dmlconf_here(tmp_path, "run", "-b", "directml", "--directml", "a,b.dll")
    assert done.returncode == 2
    assert "DMLCONF_DIRECTML" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "-b", "directml"],
        ["record", "-b", "directml", "-o", "x.dmlrec"],
        ["run", "-b", "directml:adapter=0"],
        ["devices"],
    ],
)
def test_the_exit_code_is_4_for_a_missing_file(tmp_path: Path, arguments: list[str]) -> None:
    file = write(tmp_path)  # The option overrides the variable, whose file exists.
    cases = [] if arguments == ["devices"] else [file]
    done = dmlconf_here(
        tmp_path, *arguments, *cases, "--directml", "missing.dll", DMLCONF_DIRECTML=str(file)
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert "DirectML was not found. Tried:\n  the option path: missing.dll (no such file)\n" in (
        done.stderr
    )


def test_the_exit_code_is_4_for_a_folder(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path), "-b", "directml", "--directml", tmp_path)
    assert done.returncode == 4
    assert f"the option path: {tmp_path} (a folder, not a file)" in done.stderr


def test_a_backends_path_overrides_option_directml(tmp_path: Path) -> None:
    backends = ("-b", "directml:path=own.dll", "-b", "directml")
    done = dmlconf_here(tmp_path, "run", write(tmp_path), *backends, "--directml", "given.dll")
    assert done.returncode == 4
    assert "own.dll (no such file)" in done.stderr
    assert "given.dll" not in done.stderr


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("command", ["run", "devices"])
def test_the_exit_code_is_4_for_a_text_file(tmp_path: Path, wsl: Path, command: str) -> None:
    file = tmp_path / "libdirectml.so"
    file.write_text("not a library\n" * 100, encoding="utf-8")
    assert_refused(tmp_path, wsl, command, file, f"{file} cannot be loaded as DirectML")


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("command", ["run", "devices"])
def test_the_exit_code_is_4_for_another_library(tmp_path: Path, wsl: Path, command: str) -> None:
    file = compile_library(NOTHING, tmp_path / "libdirectml.so")
    actual = f"{file} lacks the function DMLCreateDevice1: it is not DirectML"
    assert_refused(tmp_path, wsl, command, file, actual)


def assert_refused(directory: Path, wsl: Path, command: str, file: Path, message: str) -> None:
    run = [str(write(directory)), "-b", "directml"] if command == "run" else []
    done = dmlconf(directory, command, *run, "--directml", file, DMLCONF_WSL_LIBRARIES=str(wsl))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"Error: {message}")
    assert "Found by the option path; expected libdirectml.so 1.1 or newer" in done.stderr
    assert "pip install --no-deps torch-directml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@on_linux
def test_the_exit_code_is_4_for_a_missing_function(tmp_path: Path, wsl: Path) -> None:
    file = compile_library(MAKE_DEVICE, tmp_path / "libdirectml.so")
    done = dmlconf(
        tmp_path,
        "run",
        write(tmp_path),
        "-b",
        "directml",
        "--directml",
        file,
        DMLCONF_WSL_LIBRARIES=str(wsl),
    )
    assert done.returncode == 4
    assert f"{wsl / 'libdxcore.so'} lacks the function DXCoreCreateAdapterFactory" in done.stderr
    assert "DMLCONF_WSL_LIBRARIES=FOLDER" in done.stderr
