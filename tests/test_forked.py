"""Worker processes that tests start are copies of a prepared one, and behave like new ones.

The tested code is in `tests/forked.py`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")


def write_about_this_process(file: Path) -> None:
    """Write a variable, the working folder and the parent's command line to a file, as JSON."""
    about = {"variable": os.environ.get("DMLCONF_TEST"), "folder": str(Path.cwd())}
    file.write_text(json.dumps({**about, "parent": psutil.Process().parent().cmdline()}), "utf-8")


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("value", ["one", "two"])
def test_copy_has_variables_and_folder_of_its_starter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("DMLCONF_TEST", value)
    monkeypatch.chdir(tmp_path)
    process = get_context("spawn").Process(
        target=write_about_this_process, args=(tmp_path / "about.json",)
    )
    process.start()
    process.join()
    assert process.exitcode == 0
    about = json.loads((tmp_path / "about.json").read_text("utf-8"))
    assert (about["variable"], about["folder"]) == (value, str(tmp_path))
    # The fork server made the copy.
    assert "multiprocessing.forkserver" in str(about["parent"])


def test_killed_copy_has_the_negative_signal_as_exit_code() -> None:
    process = get_context("spawn").Process(target=kill_this_process)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
