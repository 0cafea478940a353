"""A lock is on the file at its path, also while other processes remove and create that file.

The tested code is in `dmlconf/workers/locks.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dmlconf.workers import locks
from dmlconf.workers.locks import FileLock, LockedError


def _is_locked(path: Path) -> bool:
    try:
        FileLock(path).release()
    except LockedError:
        return True
    return False


def test_lock_is_held_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    assert _is_locked(path)
    lock.release()
    assert not _is_locked(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove open files")
def test_lock_is_on_the_new_file_where_the_old_one_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    lock_descriptor = locks._lock

    def remove_and_lock(descriptor: int) -> None:
        monkeypatch.setattr(locks, "_lock", lock_descriptor)
        path.unlink()
        lock_descriptor(descriptor)

    monkeypatch.setattr(locks, "_lock", remove_and_lock)
    lock = FileLock(path)
    assert _is_locked(path)
    lock.release()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove open files")
def test_file_that_another_run_has_locked_anew_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    lock_descriptor = locks._lock
    others: list[FileLock] = []

    def replace_and_lock(descriptor: int) -> None:
        monkeypatch.setattr(locks, "_lock", lock_descriptor)
        path.unlink()
        others.append(FileLock(path))
        lock_descriptor(descriptor)

    monkeypatch.setattr(locks, "_lock", replace_and_lock)
    with pytest.raises(LockedError):
        FileLock(path)
    others[0].release()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes the file after the lock")
def test_file_is_removed_before_its_lock_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    close = os.close
    existed: list[bool] = []

    def look_and_close(descriptor: int) -> None:
        existed.append(path.exists())
        close(descriptor)

    monkeypatch.setattr(os, "close", look_and_close)
    lock.remove()
    assert existed == [False]


def test_file_is_locked_where_files_have_no_lasting_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    lock = FileLock(path)
    assert _is_locked(path)
    lock.release()


@pytest.mark.parametrize("exists", [False, True])
def test_replaced_file_has_the_content_of_the_other(tmp_path: Path, exists: bool) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    if exists:
        path.write_bytes(b"old")
    other.write_bytes(b"new")
    FileLock(path).replace_by(other)
    assert path.read_bytes() == b"new"
    assert not other.exists()
    assert not _is_locked(path)
