"""Folders and files of other kinds that are named as run logs are refused by what they are.

The tested code is in `dmlconf/run_log/other_files.py` and `dmlconf/run_log/lines.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.process import TILE, dmlconf_here, write


def refusal(folder: Path, *arguments: str | Path) -> str:
    done = dmlconf_here(folder, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    return done.stderr


def test_a_folder_is_refused_with_the_run_logs_in_it(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "other.jsonl").write_text("{}\n", encoding="utf-8")
    without = "runs is a folder without run logs; name the file of a run log"
    assert without in refusal(tmp_path, "report", "runs")
    assert dmlconf_here(tmp_path, "run", write(tmp_path), "--log", "runs/a.jsonl").returncode == 0
    assert "runs is a folder; name its run log, runs/a.jsonl" in refusal(tmp_path, "report", "runs")
    log = (runs / "a.jsonl").read_bytes()
    for age, name in enumerate("bcde"):
        path = runs / f"{name}.jsonl"
        path.write_bytes(log)
        os.utime(path, (10**9 - age, 10**9 - age))
    several = "runs is a folder; name one of its run logs, runs/a.jsonl, runs/b.jsonl, runs/c.jsonl"
    for command in (
        ("report", "runs"),
        ("merge", "runs", "-o", "merged.jsonl"),
        ("history", "add", "runs", "--database", "h.db"),
    ):
        assert f"{several} and 2 more" in refusal(tmp_path, *command)
    assert not (tmp_path / "h.db").exists()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (TILE.encode(), "it is a case file"),
        (TILE.encode("utf-16"), "it is UTF-16 text; save it as UTF-8"),
        (b'\xef\xbb\xbf{"record":"header"}\n', "it begins with a byte order mark"),
        (b'{"record":"header","form', "its first line is cut off, so nothing of the run is left"),
        (b"Some text.\n", "not JSON: "),
    ],
)
def test_a_file_of_another_kind_is_refused_by_its_kind(
    tmp_path: Path, content: bytes, what: str
) -> None:
    (tmp_path / "log").write_bytes(content)
    assert f"log:1: not a dmlconf run log: {what}" in refusal(tmp_path, "report", "log")
