"""No log of another run is lost while that run goes on; an odd folder or old log causes no error.

The tested code is in `dmlconf/cli/common/logs.py` and `dmlconf/cli/runs/logged_run.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from dmlconf.cli.common import logs
from dmlconf.cli.common.logs import DIRECTORY_VARIABLE, latest_log, new_log, opened_log
from tests.cli.process import dmlconf, dmlconf_here, write


def test_old_log_that_cannot_be_removed_causes_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    old = [tmp_path / f"run-{number:02}.jsonl" for number in range(22)]
    old[0].mkdir()  # `unlink` cannot remove a folder.
    for each in old[1:]:
        each.write_bytes(b"")
    for each in old:
        os.utime(each, (0, 0))
    log = new_log()
    # The 20 latest logs, and the one that cannot be removed.
    assert {*tmp_path.iterdir()} == {log, *old[3:], old[0]}


def test_too_long_folder_name_gives_no_latest_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / ("x" * 300)))
    # This folder is searched next; it has no log.
    monkeypatch.setattr(logs, "temporary_log_directory", lambda: tmp_path)
    assert latest_log() is None


@pytest.mark.skipif(os.name == "nt", reason="other folders hold temporary files there")
def test_a_file_in_place_of_the_folder_of_logs_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    variables = {DIRECTORY_VARIABLE: "file", "TMPDIR": str(tmp_path / "tmp")}
    done = dmlconf(tmp_path, "run", write(tmp_path), **variables)
    assert done.returncode == 0
    folder = f"{tmp_path / 'tmp'}/dmlconf-runs-"
    message = f"Warning: file is a file, not a folder: the run log is {folder}"
    assert message in done.stderr


def test_log_to_which_a_run_is_writing_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    old = [tmp_path / f"run-{number:02}.jsonl" for number in range(22)]
    for each in old:
        each.write_bytes(b"")
    failing = old[0].with_suffix(".failures")
    failing.mkdir()
    with opened_log(old[0]):  # Its run has been stopped for years.
        for each in old:
            os.utime(each, (0, 0))
        log = new_log()
    assert {*tmp_path.iterdir()} == {log, *old[3:], old[0], failing}
    new_log()
    assert not old[0].exists()
    assert not failing.exists()


def test_resumed_log_that_got_a_run_meanwhile_is_not_emptied(tmp_path: Path) -> None:
    # Two runs with `--resume` find no log; one of them ends before the other opens it.
    write(tmp_path)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--log", "r.jsonl")
    assert done.returncode == 0, done.stderr
    log = tmp_path / "r.jsonl"
    written = log.read_bytes()
    with pytest.raises(click.UsageError, match="another run wrote to it"):
        opened_log(log, None, resume=True).__enter__()
    assert log.read_bytes() == written
