"""An old run log that cannot be removed and a log folder with too long a name cause no error.

The tested code is in `dmlconf/cli/common/logs.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dmlconf.cli.common import logs
from dmlconf.cli.common.logs import DIRECTORY_VARIABLE, latest_log, new_log


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
