"""Temporary folders of runs: removed behind dead runs, and never under living ones."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dmlconf.runner.scratch import ScratchFolder, remove_abandoned


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_runs_that_start_at_once_leave_each_other_alone(temporary: Path) -> None:
    def run(_: int) -> None:
        for _ in range(40):
            with ScratchFolder() as folder:
                (folder / "file").touch()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(8)))
    assert not list(temporary.iterdir())


def test_a_folder_in_use_stays_and_that_of_a_dead_run_goes(temporary: Path) -> None:
    abandoned = temporary / "dmlconf-dead"
    abandoned.mkdir()
    (abandoned / "in-use.lock").touch()
    (abandoned / "worker-1.stderr").touch()
    with ScratchFolder() as folder:
        remove_abandoned()
        assert list(temporary.iterdir()) == [folder]
