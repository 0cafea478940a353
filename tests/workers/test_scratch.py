"""Temporary folders of dead runs are removed, and never those of living ones.

The tested code is in `dmlconf/workers/scratch.py`, `dmlconf/workers/locks.py` and
`dmlconf/workers/pool.py`.
"""

from __future__ import annotations

import errno
import os
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dmlconf.backends import registry
from dmlconf.workers.pool import WorkerPool
from dmlconf.workers.scratch import ScratchFolder, remove_abandoned


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty folder the system's folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_runs_side_by_side_never_remove_each_others_folders(temporary: Path) -> None:
    def run(_: int) -> None:
        for _ in range(40):
            with ScratchFolder() as folder:
                (folder / "file").touch()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(8)))
    assert not list(temporary.iterdir())


def test_only_the_folder_of_a_dead_run_is_removed(temporary: Path) -> None:
    abandoned = temporary / "dmlconf-dead"
    abandoned.mkdir()
    (abandoned / "worker-1.stderr").touch()
    (temporary / "dmlconf-dead.lock").touch()
    with ScratchFolder() as folder:
        remove_abandoned()
        assert set(temporary.iterdir()) == {folder, folder.with_suffix(".lock")}


def test_a_lock_file_without_a_folder_is_removed(temporary: Path) -> None:
    (temporary / "dmlconf-dead.lock").touch()
    with ScratchFolder() as folder:
        assert set(temporary.iterdir()) == {folder, folder.with_suffix(".lock")}


def test_a_folder_without_a_lock_file_is_not_removed(temporary: Path) -> None:
    other = temporary / "dmlconf-of-somebody"
    other.mkdir()
    remove_abandoned()
    assert other.is_dir()


def test_target_of_an_abandoned_link_is_not_removed(temporary: Path) -> None:
    precious = temporary / "precious"
    precious.mkdir()
    (temporary / "dmlconf-link").symlink_to(precious)
    (temporary / "dmlconf-link.lock").touch()
    remove_abandoned()
    assert precious.is_dir()
    assert (temporary / "dmlconf-link.lock").is_file()


def test_the_lock_is_held_before_the_folder_exists(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run may look for abandoned folders at any moment."""
    create = Path.mkdir

    def create_and_look(path: Path, mode: int = 0o777) -> None:
        create(path, mode)
        remove_abandoned()

    monkeypatch.setattr(Path, "mkdir", create_and_look)
    with ScratchFolder() as folder:
        assert folder.is_dir()


def test_file_system_without_locks_is_an_error(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("dmlconf.workers.locks._lock", refuse)
    with pytest.raises(OSError, match=os.strerror(errno.ENOLCK)):
        ScratchFolder()
    assert not list(temporary.iterdir())


def test_interrupted_pool_leaves_no_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Path.mkdir

    def create_and_interrupt(path: Path, mode: int = 0o777) -> None:
        create(path, mode)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "mkdir", create_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        WorkerPool(registry.parse("numpy"), 1, 60)
    assert not list(temporary.iterdir())
