"""Paths that are too long or not UTF-8, deleted folders, pipes and devices cause no crash.

The tested code is in `dmlconf/documents/files.py`, `dmlconf/cli/output/files.py`,
`dmlconf/cli/options/case_lists.py`, `dmlconf/cli/options/reporting.py`,
`dmlconf/cli/options/resumption.py`, `dmlconf/cli/runs/run_sources.py` and
`dmlconf/cases/loading/discovery.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from tests.cli.process import DMLCONF, TILE, dmlconf, dmlconf_here, environment, write

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only on Linux are names of files bytes"
)


@pytest.fixture
def name_not_utf8(tmp_path: Path) -> str:
    name = os.fsdecode(b"odd-\xff.yaml")
    (tmp_path / name).write_text(TILE, encoding="utf-8")
    return name


@pytest.mark.slow
def test_file_name_that_is_not_utf8_is_reported(tmp_path: Path, name_not_utf8: str) -> None:
    names = ("json:x.json", "junit:x.xml", "markdown:x.md", "text:x.txt")
    reports = [part for name in names for part in ("--report", name)]
    done = dmlconf(tmp_path, "run", name_not_utf8, "--log", "run.jsonl", *reports)
    assert done.returncode == 0, done.stderr
    [verdict] = json.loads((tmp_path / "x.json").read_text("utf-8"))["verdicts"]
    assert verdict["case"] == read_log(tmp_path / "run.jsonl").verdicts[0].case
    for name in names:
        assert (tmp_path / name.partition(":")[2]).stat().st_size > 0
    assert r"odd-\udcff" in dmlconf(tmp_path, "list", name_not_utf8).stdout


def test_pipes_devices_and_broken_links_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    (folder / "folder.yaml").mkdir(parents=True)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")
    (folder / "nothing.yaml").symlink_to("nowhere")
    (folder / "right.yaml").write_text(TILE, encoding="utf-8")
    done = dmlconf_here(tmp_path, "run", "cases")
    assert done.returncode == 3
    assert "device.yaml: is a device, not a regular file" in done.stderr
    assert "nothing.yaml: cannot be read: No such file or directory" in done.stderr
    assert "pipe.yaml: is a named pipe, not a regular file" in done.stderr
    assert "3 problems found" in done.stderr


@pytest.mark.parametrize("command", ["run", "list", "validate"])
def test_a_name_that_is_too_long_is_refused(tmp_path: Path, command: str) -> None:
    done = dmlconf_here(tmp_path, command, "a" * 300)
    assert done.returncode == 3
    assert "cannot be read: File name too long" in done.stderr


LONG = "a" * 300


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "case.yaml", "--failed", LONG], 3, "cannot be read: File name too long"),
        (["run", "case.yaml", "--resume", LONG], 2, f"--resume {LONG}: there is no such log"),
        (["compare", LONG, "run.jsonl"], 3, "cannot be read: File name too long"),
        (["diagnose", LONG], 2, "; if it is a case, name the backend that fails it"),
        (["record", "case.yaml", "-o", LONG], 2, "neither a folder nor a name that ends in"),
        (["record", LONG, "--into-case"], 2, "--into-case needs the case file"),
        (["record", LONG], 2, "say where to write: -o NAME.dmlrec, -o FOLDER, or --into-case"),
        (["devices", "--directml", LONG], 4, f"the option path: {LONG}"),
    ],
)
def test_a_name_that_is_too_long_is_the_name_of_nothing(
    tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, *words)
    assert message in done.stderr
    assert done.returncode == code


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", ""], "'[PATHS]...'"),
        (["run", "-o", "TILE", "--dump", ""], "'--dump'"),
        (["run", "-o", "TILE", "--log", ""], "'--log'"),
        (["run", "-o", "TILE", "--waivers", ""], "'--waivers'"),
        (["report", ""], "'[LOGS]...'"),
        (["compare", "", "new.jsonl"], "'BASE'"),
        (["waive", ""], "'[LOG]'"),
    ],
)
def test_an_empty_path_is_refused_and_does_not_mean_this_folder(
    tmp_path: Path, words: list[str], option: str
) -> None:
    write(tmp_path)
    before = set(tmp_path.iterdir())
    done = dmlconf_here(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert option in done.stderr
    assert "the path is empty; name a file or folder" in done.stderr
    assert "perhaps a variable is not set" in done.stderr
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", "-o", "TILE", "--case", ""], "'--case'"),
        (["run", "-o", "TILE", "--tag", ""], "'--tag'"),
        (["run", "-o", "TILE", "--without-tag", ""], "'--without-tag'"),
        (["run", "-o", "TILE", "--where", ""], "'--where'"),
        (["run", "-o", "TILE", "--cases", ""], "'--cases'"),
        (["run", "-o", "TILE", "--failed", ""], "'--failed'"),
        (["run", "-o", ""], "'-o' / '--operator'"),
        (["run", "-o", "TILE", "-k", ""], "'-k'"),
        (["run", "-o", "TILE", "--profile", ""], "'--profile'"),
        (["run", "-o", "TILE", "--config-profile", ""], "'--config-profile'"),
        (["operators", ""], "'[NAME]'"),
        (["faults", ""], "'[NAME]...'"),
        (["devices", "--directml", ""], "'--directml'"),
        (["verify", "x.dmlcert", "--profile", ""], "'--profile'"),
        (["show", ""], "'CASE'"),
        (["diagnose", ""], "'[LOG|CASE]'"),
        (["waive", "--case", ""], "'--case'"),
    ],
)
def test_an_empty_name_or_condition_is_refused(
    tmp_path: Path, words: list[str], option: str
) -> None:
    done = dmlconf_here(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert f"Invalid value for {option}: it is empty (perhaps a variable is not set)" in done.stderr


@pytest.mark.hostile
def test_deleted_working_folder_gives_ordinary_exit_codes(tmp_path: Path) -> None:
    script = f"mkdir gone; cd gone; rmdir ../gone; {shlex.join(DMLCONF)}"
    run = "run -o TILE --quick -q"
    file = write(tmp_path)
    workers = f"run {file} -b faulty:zeros -q -j 2"
    expected_codes = {
        run: 0,
        "run x.yaml": 3,
        f"{run} --report json:x.json": 2,
        f"validate {file}": 0,
        workers: 1,
        "devices --directml x.dll": 4,
    }
    codes = {
        arguments: subprocess.run(
            ["bash", "-c", f"{script} {arguments}"],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        ).returncode
        for arguments in expected_codes
    }
    assert codes == expected_codes


@pytest.mark.slow
def test_report_into_a_pipe_without_reader_fails(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(TILE, encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    done = dmlconf_here(tmp_path, "run", "case.yaml", "--report", "json:pipe")
    assert done.returncode == 8
    assert "--report json:pipe could not be written: No such device or address" in done.stderr


def test_resuming_from_a_named_pipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(TILE, encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    done = dmlconf_here(tmp_path, "run", "case.yaml", "--resume", "pipe")
    assert done.returncode == 3
    assert "pipe: is a named pipe, not a regular file" in done.stderr
