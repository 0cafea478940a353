"""DirectML's library is found and loaded, or a message says why not.

The tested code is in `dmlconf/backends/directml/api/library.py`.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from dmlconf.backends.directml.api import library
from dmlconf.backends.directml.api.library import find, load
from dmlconf.backends.protocol import BackendError

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="tests how Linux finds libraries")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide DirectML packages and the variables that name a DirectML."""
    for name in (library.PATH_VARIABLE, library.LIBRARY_FOLDER_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(library, "_LINUX_PACKAGES", ("no-such-package", "nor-this-one"))


def install_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = folder / "tensorflow_directml_plugin-0.4.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow-directml-plugin\n")
    names = ("other.so", "libdirectml.txt", "libdirectml.ab12.so")
    (info / "RECORD").write_text("".join(f"plugin/{name},,\n" for name in names))
    (folder / "plugin").mkdir()
    (folder / "plugin" / "libdirectml.ab12.so").touch()
    monkeypatch.setattr(library, "_LINUX_PACKAGES", ("tensorflow-directml-plugin",))
    monkeypatch.syspath_prepend(str(folder))


@on_linux
def test_missing_library_error_names_attempts_and_remedy() -> None:
    with pytest.raises(BackendError) as caught:
        find()
    message = str(caught.value)
    assert "the package no-such-package: not installed" in message
    assert "the package nor-this-one: not installed" in message
    assert "pip install --no-deps torch-directml" in message
    assert library.PATH_VARIABLE in message


def test_path_of_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        find(str(tmp_path))
    assert f"the option path: {tmp_path} (a folder, not a file)" in str(caught.value)


def test_error_on_macos_lists_no_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BackendError, match=r"^DirectML was not found\nDirectML exists only for "):
        find()


def test_missing_file_of_the_option_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.dll"
    other.touch()
    monkeypatch.setenv(library.PATH_VARIABLE, str(other))
    with pytest.raises(BackendError, match=r"the option path: .*missing\.dll"):
        find(str(tmp_path / "missing.dll"))


@on_linux
def test_environment_variable_comes_before_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, monkeypatch)
    file = tmp_path / "DirectML.dll"
    file.touch()
    monkeypatch.setenv(library.PATH_VARIABLE, str(file))
    assert find() == (file, f"the variable {library.PATH_VARIABLE}")


@on_linux
def test_missing_file_of_the_variable_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, monkeypatch)
    monkeypatch.setenv(library.PATH_VARIABLE, "nowhere.dll")
    with pytest.raises(BackendError, match=rf"{library.PATH_VARIABLE}: nowhere\.dll"):
        find()


@on_linux
def test_empty_environment_variables_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, monkeypatch)
    folder = library.wsl_folder()
    for name in (library.PATH_VARIABLE, library.LIBRARY_FOLDER_VARIABLE):
        monkeypatch.setenv(name, "")
    assert find()[1] == "the package tensorflow-directml-plugin"
    assert library.wsl_folder() == folder == Path("/usr/lib/wsl/lib")


@on_linux
def test_library_with_a_hash_in_its_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, monkeypatch)
    path, origin = find()
    assert path.name == "libdirectml.ab12.so"
    assert origin == "the package tensorflow-directml-plugin"


@on_linux
def test_missing_wsl_libraries_are_named(
    wsl_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(library.LIBRARY_FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(BackendError) as caught:
        load(str(wsl_folder / "libdirectml.so"))
    assert f"libdxcore.so and libd3d12.so not found in {tmp_path}" in str(caught.value)
    assert library.LIBRARY_FOLDER_VARIABLE in str(caught.value)


def test_a_file_that_is_no_library_is_refused(
    wsl_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(library.LIBRARY_FOLDER_VARIABLE, str(wsl_folder))
    file = tmp_path / "libdirectml.so"
    file.write_text("not a library")
    with pytest.raises(BackendError, match="cannot be loaded as DirectML"):
        load(str(file))


def test_a_library_that_is_not_directml_is_refused(
    wsl_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(library.LIBRARY_FOLDER_VARIABLE, str(wsl_folder))
    with pytest.raises(BackendError, match="lacks the function DMLCreateDevice1") as caught:
        load(str(wsl_folder / "libother.so"))
    assert "it is not DirectML" in str(caught.value)


def test_a_loaded_library_has_its_path_origin_version_and_digest(
    wsl_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(library.LIBRARY_FOLDER_VARIABLE, str(wsl_folder))
    path = wsl_folder / "libdirectml.so"
    file = load(str(path)).file
    assert file.path == path
    assert file.origin == "the option path"
    assert file.version == "1.99.3"  # The stand-in's version.
    assert file.sha256 == sha256(path.read_bytes()).hexdigest()
