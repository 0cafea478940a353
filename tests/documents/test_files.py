"""Files are read up to a limit, whatever size they claim to have; a loop of links is resolved.

Files are written in folders that other processes make and remove at the same time.

The tested code is in `dmlconf/documents/files.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dmlconf.documents.files import (
    UnreadableFileError,
    make_folders,
    read_bytes,
    remove_folders,
    resolved,
    write_in,
)

PROC_STATUS = Path("/proc/self/status")
"""A file with content; `stat` says that its size is 0."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a file")
def test_file_is_read_beyond_the_size_it_claims() -> None:
    assert PROC_STATUS.stat().st_size == 0
    assert b"\nVmRSS:" in read_bytes(PROC_STATUS, 1 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a file")
def test_file_beyond_the_limit_is_refused_whatever_it_claims() -> None:
    with pytest.raises(UnreadableFileError, match="at most 20 are read"):
        read_bytes(PROC_STATUS, 20)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_loop_of_links_resolves_to_itself(tmp_path: Path) -> None:
    loop = tmp_path.resolve() / "loop"
    loop.symlink_to(loop)
    assert resolved(loop) == loop


def test_folder_that_another_process_makes_first_is_not_among_the_created_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def second(folder: Path) -> None:
        mkdir(folder, exist_ok=True)
        mkdir(folder)

    inner = tmp_path / "outer" / "inner"
    monkeypatch.setattr(Path, "mkdir", lambda each: (mkdir if each == inner else second)(each))
    assert make_folders(inner) == [inner]
    remove_folders([inner])
    assert (tmp_path / "outer").is_dir()


def test_file_is_written_in_a_folder_that_another_process_removes(tmp_path: Path) -> None:
    folder = tmp_path / "outer" / "inner"
    attempts = 0

    def write() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            remove_folders([folder.parent, folder])
        (folder / "file").write_bytes(b"content")

    assert write_in(folder, write) == [folder.parent, folder]
    assert (folder / "file").read_bytes() == b"content"


def test_file_that_cannot_be_written_leaves_no_created_folder(tmp_path: Path) -> None:
    folder = tmp_path / "outer" / "inner"
    with pytest.raises(FileNotFoundError):
        write_in(folder, (folder / "missing" / "file").touch)
    assert not folder.parent.exists()
