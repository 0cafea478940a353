"""A run keeps its verdicts if its output cannot be written, or if nobody reads its output.

The tested code is in `dmlconf/cli/output/console.py`, `dmlconf/cli/output/files.py`,
`dmlconf/cli/common/logs.py`, `dmlconf/cli/options/reporting.py`, `dmlconf/cli/entry_point.py` and
`dmlconf/engine/consumers.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from tests.cli.process import TILE, beginning, dmlconf, environment, script, text_of

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and shells"),
]

FULL = "/dev/full"
"""A device on which every write fails, as on a full disk."""

LIMITED = "export PYTHONDONTWRITEBYTECODE=1; ulimit -f 16"
"""Limit files to 16 KiB, and write no compiled modules, which may be larger."""


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "case.yaml"
    path.write_text(TILE, encoding="utf-8")
    return path


def run_in_shell(directory: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `$D` is dmlconf; a pipe has the exit code of its first part."""
    return subprocess.run(
        ["bash", "-c", f"IFS=; {command}; exit ${{PIPESTATUS[0]}}"],
        cwd=directory,
        env=environment(directory, D=script(directory)),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("backend", "code"), [("numpy", 8), ("faulty:zeros", 1)])
def test_a_report_that_cannot_be_written_hides_no_verdict(
    case: Path, backend: str, code: int
) -> None:
    arguments = ("--report", f"json:{FULL}", "--report", "markdown:after.md")
    done = dmlconf(case.parent, "run", "case.yaml", "-b", backend, *arguments)
    assert done.returncode == code
    assert f"Error: --report json:{FULL} could not be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert (case.parent / "after.md").exists()


@pytest.mark.parametrize(("backend", "code"), [("numpy", 8), ("faulty:zeros", 1)])
def test_a_full_standard_output_hides_no_verdict(case: Path, backend: str, code: int) -> None:
    done = run_in_shell(case.parent, f"$D run case.yaml -b {backend} --report json:x.json >{FULL}")
    assert done.returncode == code
    assert "Error: the table could not be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert (case.parent / "x.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "run --help",
        "list case.yaml",
        "validate case.yaml",
        "operators TILE",
        "show tile/case/stated case.yaml",
        "config",
        "keygen key.pem",
    ],
)
def test_full_output_of_other_commands_gives_exit_code_8(case: Path, command: str) -> None:
    done = run_in_shell(case.parent, f"$D {command} >{FULL}")
    assert done.returncode == 8, done.stderr
    message = "Error: standard output could not be written: No space left on device\n"
    assert done.stderr.endswith(message)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("backend", "code"), [("numpy", 0), ("faulty:zeros", 1)])
def test_a_reader_that_closes_the_pipe_changes_no_exit_code(
    case: Path, backend: str, code: int
) -> None:
    reports = "--report json --report markdown:after.md"
    done = run_in_shell(case.parent, f"$D run case.yaml -b {backend} {reports} | true")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert (case.parent / "after.md").exists()


def test_closed_pipe_of_a_list_gives_exit_code_0(tmp_path: Path) -> None:
    done = run_in_shell(tmp_path, "$D list -o TILE | head -1 >/dev/null")
    assert done.returncode == 0
    assert re.fullmatch(r"[0-9]+ cases\n", done.stderr)


def test_closed_standard_streams_change_no_exit_code_or_log(case: Path) -> None:
    for closed in ("2>&-", "2>&- >&-", ">&- <&-"):
        done = run_in_shell(case.parent, f"$D run case.yaml -b faulty:zeros --log x.jsonl {closed}")
        assert done.returncode == 1
        assert read_log(case.parent / "x.jsonl").complete


@pytest.mark.parametrize(("backend", "code"), [("numpy", 6), ("faulty:zeros", 1)])
def test_full_disk_for_the_log_ends_the_run(tmp_path: Path, backend: str, code: int) -> None:
    """A limit on the size of files stands for the full disk."""
    done = run_in_shell(tmp_path, f"{LIMITED}; $D run -b {backend} -o TILE -j 2 --log run.jsonl")
    assert done.returncode == code
    assert "Error: the run log run.jsonl cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    # The first verdicts, which fit into 16 KiB.
    assert len(read_log(tmp_path / "run.jsonl").verdicts) > 3


def test_full_disk_for_a_resumed_log_hides_no_failure(tmp_path: Path) -> None:
    wrong_then_right = (
        TILE.replace("[1, 2, 1, 2]", "[1, 2, 1, 3]")
        + """\
  - matrix: {Count: "=range(1, 101)"}
    desc:
      InputTensor: {Sizes: "=(Count,)", DataType: INT32, fill: sequence}
      OutputTensor: {Sizes: "=(Count,)", DataType: INT32}
      Repeats: [1]
"""
    )
    (tmp_path / "case.yaml").write_text(wrong_then_right, encoding="utf-8")
    begun = dmlconf(tmp_path, "run", "case.yaml", "--log", "run.jsonl", "--max-failures", "1")
    assert begun.returncode == 1
    done = run_in_shell(tmp_path, f"{LIMITED}; $D run case.yaml --resume run.jsonl")
    assert "Error: the run log run.jsonl cannot be written: File too large" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pipe", ": not a regular file"),
        ("/dev/null", ": not a regular file"),
        ("folder", "folder is a folder; name a file"),
    ],
)
def test_a_log_that_is_no_regular_file_is_refused(case: Path, name: str, message: str) -> None:
    os.mkfifo(case.parent / "pipe")
    (case.parent / "folder").mkdir()
    done = dmlconf(case.parent, "run", "case.yaml", "--log", name)
    assert done.returncode == 2
    assert message in done.stderr


def test_log_of_a_running_run_is_refused(case: Path) -> None:
    first = beginning(case.parent, "run", "case.yaml", "-b", "faulty:hang", "--log", "x.jsonl")
    log = case.parent / "x.jsonl"
    while not text_of(log):
        assert first.poll() is None
        time.sleep(0.01)
    written = log.read_text("utf-8")
    second = dmlconf(case.parent, "run", "case.yaml", "--log", "x.jsonl")
    assert second.returncode == 2
    assert "another run is writing to it" in second.stderr
    assert log.read_text("utf-8") == written
    first.kill()
    first.communicate(timeout=60)
    assert dmlconf(case.parent, "run", "case.yaml", "--log", "x.jsonl").returncode == 0


def test_new_file_that_cannot_be_written_is_removed(tmp_path: Path) -> None:
    done = run_in_shell(tmp_path, "ulimit -f 0; $D new case TILE --output folder/tile.yaml")
    assert done.returncode == 2
    assert "--output folder/tile.yaml: File too large" in done.stderr
    assert not (tmp_path / "folder").exists()
