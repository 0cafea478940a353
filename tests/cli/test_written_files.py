"""Files that commands write: none takes another's place, and no run loses its log to another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dmlconf.runner.log import read_log
from tests.cli.process import dmlconf_here, write


@pytest.mark.parametrize(
    "arguments",
    [
        ["--report", "json:x", "--report", "junit:x"],
        ["--log", "x", "--report", "json:./x"],
    ],
)
def test_no_file_is_written_twice(tmp_path: Path, arguments: list[str]) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path), *arguments)
    assert done.returncode == 2
    assert "x would be written twice" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_report_does_not_replace_the_log_it_is_made_from(tmp_path: Path) -> None:
    dmlconf_here(tmp_path, "run", write(tmp_path), "--log", "log.jsonl")
    done = dmlconf_here(tmp_path, "report", "log.jsonl", "--report", "json:log.jsonl")
    assert done.returncode == 2
    assert read_log(tmp_path / "log.jsonl").verdicts


def test_a_report_to_a_file_is_of_one_backend(tmp_path: Path) -> None:
    backends = ["-b", "numpy", "-b", "miniature:zeros"]
    done = dmlconf_here(tmp_path, "run", write(tmp_path), *backends, "--report", "json:x")
    assert done.returncode == 2
    assert "takes one backend" in done.stderr


def test_a_recording_has_its_ending(tmp_path: Path) -> None:
    (tmp_path / "TILE").write_text("mine", encoding="utf-8")
    done = dmlconf_here(tmp_path, "record", write(tmp_path), "-b", "numpy", "-o", "TILE")
    assert done.returncode == 2
    assert "to select an operator, use --operator" in done.stderr
    assert (tmp_path / "TILE").read_text("utf-8") == "mine"


def test_old_logs_go_and_those_of_today_stay(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(30):
        log = logs / f"run-20200101T0000{number:02}.0-1.jsonl"
        log.touch()
        if number < 10:
            os.utime(log, (0, 0))
    assert dmlconf_here(tmp_path, "run", write(tmp_path)).returncode == 0
    kept = sorted(path.name for path in logs.iterdir())
    assert len(kept) == 21
    assert kept[0] == "run-20200101T000010.0-1.jsonl"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--timeout", "nan"],
        ["coverage", "--fail-under", "nan"],
        ["strength", "--fail-under", "nan"],
    ],
)
def test_a_limit_is_a_number(tmp_path: Path, arguments: list[str]) -> None:
    done = dmlconf_here(tmp_path, *arguments)
    assert done.returncode == 2
    assert "nan is not a number" in done.stderr
