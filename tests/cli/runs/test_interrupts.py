"""After Ctrl-C, SIGTERM or SIGKILL, dmlconf and its workers end, and finished verdicts are kept.

Ctrl-C sends SIGINT to dmlconf and to its workers.

The tested code is in `dmlconf/cli/entry_point.py`, `dmlconf/workers/interrupts.py`,
`dmlconf/workers/pool.py`, `dmlconf/workers/worker.py`, `dmlconf/workers/scratch.py`,
`dmlconf/engine/core.py` and `dmlconf/backends/process_start.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dmlconf.run_log.log import read_log
from dmlconf.verdicts.verdict import ReasonKind, Status
from tests.cli.process import RIGHT, TILE, beginning, dmlconf, environment, text_of
from tests.engine import witness
from tests.workers.processes import running

pytestmark = [
    pytest.mark.breakdown,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

LOG = "run.jsonl"
CHOSEN_CASES = ("--operator", "TILE", "-k", "matrix/layouts")


def start(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    temporary = directory / "temporary"
    temporary.mkdir()
    return beginning(directory, *arguments, TMPDIR=str(temporary))


def run_until(directory: Path, lines: int, backend: str, *more: str) -> subprocess.Popen[str]:
    process = start(directory, "run", *CHOSEN_CASES, "-b", backend, "--log", LOG, *more)
    log = directory / LOG
    while text_of(log).count("\n") < lines:
        assert process.poll() is None
        time.sleep(0.01)
    return process


def press_ctrl_c(process: subprocess.Popen[str], pauses: Sequence[float] = ()) -> tuple[str, str]:
    """Press Ctrl-C once and after each pause; return output when process and workers have ended."""
    os.killpg(process.pid, signal.SIGINT)
    for pause in pauses:
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGINT)
    return process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("backend", "lines", "more"),
    [
        ("faulty:slow", 3, ()),
        ("faulty:slow", 3, ("-j", "2")),
        ("faulty:hang", 1, ()),
        ("faulty:hang", 1, ("-j", "2")),
    ],
    ids=["slow", "slow-side-by-side", "hang", "hang-side-by-side"],
)
def test_one_ctrl_c_leaves_a_verdict_for_every_case(
    tmp_path: Path, backend: str, lines: int, more: tuple[str, ...]
) -> None:
    process = run_until(tmp_path, lines, backend, *more)
    out, _ = press_ctrl_c(process)
    assert process.returncode == 6
    log = read_log(tmp_path / LOG)
    assert log.footer is not None
    assert not log.complete
    assert log.header.selected == len(log.verdicts)
    reached = [verdict for verdict in log.verdicts if verdict.status is not Status.NOT_RUN]
    assert lines - 1 <= len(reached) < len(log.verdicts)
    assert {verdict.status for verdict in reached} <= {Status.PASSED}
    reasons = {verdict.reason.kind for verdict in log.verdicts if verdict.reason}
    assert reasons == {ReasonKind.INTERRUPTED}
    assert f"INCOMPLETE: {len(log.verdicts) - len(reached)} of {len(log.verdicts)} cases" in out


@pytest.mark.parametrize("pause", [0.001, 0.1])
def test_second_ctrl_c_ends_the_run_and_keeps_its_log(tmp_path: Path, pause: float) -> None:
    process = run_until(tmp_path, 3, "faulty:slow", "-j", "2")
    _, actual = press_ctrl_c(process, [pause])
    # The second signal itself may end Python.
    assert process.returncode in (6, -signal.SIGINT), actual
    records = [json.loads(line) for line in (tmp_path / LOG).read_text("utf-8").splitlines()]
    assert [record["record"] for record in records[:3]] == ["header", "verdict", "verdict"]
    assert len(read_log(tmp_path / LOG).verdicts) >= 2
    assert dmlconf(tmp_path, "report", LOG).returncode == 0


def test_a_recording_that_is_interrupted_leaves_no_file(tmp_path: Path) -> None:
    process = start(tmp_path, "record", *CHOSEN_CASES, "-b", "faulty:hang", "-o", "x.dmlrec")
    # The scratch folder is made just before the worker starts.
    while not list((tmp_path / "temporary").glob("dmlconf-*")):
        assert process.poll() is None
        time.sleep(0.01)
    _, actual = press_ctrl_c(process)
    assert process.returncode == 6
    assert "interrupted" in actual
    assert not list(tmp_path.glob("*.dmlrec*"))
    assert not list(tmp_path.glob(".*.tmp"))
    assert not list((tmp_path / "temporary").glob("dmlconf-*"))


def test_sigterm_gives_an_incomplete_run_and_exit_code_6(tmp_path: Path) -> None:
    process = run_until(tmp_path, 3, "faulty:slow", "-j", "2")
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "INCOMPLETE" in out
    assert read_log(tmp_path / LOG).footer is not None
    assert not list((tmp_path / "temporary").glob("dmlconf-*"))


@pytest.mark.parametrize("backend", ["faulty:hang", "faulty:slow"])
def test_killed_run_leaves_no_workers_and_next_run_cleans_up(tmp_path: Path, backend: str) -> None:
    process = run_until(tmp_path, 1, backend, "-j", "2")
    workers = children(process.pid)
    while len(workers) < 2:
        workers = children(process.pid)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while any(map(running, workers)):
        assert time.monotonic() < deadline, "workers outlive dmlconf"
        time.sleep(0.05)
    assert len(scratch_folders(tmp_path)) == 1
    (tmp_path / "case.yaml").write_text(TILE, encoding="utf-8")
    again = dmlconf(
        tmp_path,
        "run",
        "case.yaml",
        "-b",
        "faulty:no-output",
        TMPDIR=str(tmp_path / "temporary"),
    )
    assert again.returncode == 1
    assert not list((tmp_path / "temporary").glob("dmlconf-*"))


def test_scratch_folder_of_a_running_run_is_kept(tmp_path: Path) -> None:
    process = run_until(tmp_path, 1, "faulty:hang")
    (tmp_path / "case.yaml").write_text(TILE, encoding="utf-8")
    dmlconf(
        tmp_path,
        "run",
        "case.yaml",
        "-b",
        "faulty:no-output",
        TMPDIR=str(tmp_path / "temporary"),
    )
    assert len(scratch_folders(tmp_path)) == 1
    press_ctrl_c(process)


INTERRUPTED_IMPORT = """
import sys

class Interrupter:
    def find_spec(self, name, path, target=None):
        if name == "MODULE":
            exec("raise KeyboardInterrupt")  # As `dataclass` calls `exec`.

sys.meta_path.insert(0, Interrupter())
"""
"""Code that raises KeyboardInterrupt when the module MODULE is imported."""


INTERRUPTED_START = """
import os, signal, sys

if "--multiprocessing-fork" in sys.orig_argv:
    os.kill(os.getpid(), signal.SIGINT)
"""
"""Code that sends SIGINT to each process of `multiprocessing` before it imports dmlconf."""


def python_path_with(directory: Path, text: str) -> str:
    """Return a PYTHONPATH with which each Python process runs this code first."""
    (directory / "sitecustomize.py").write_text(text, encoding="utf-8")
    return os.pathsep.join((str(directory), environment(directory)["PYTHONPATH"]))


def test_ctrl_c_during_an_import_gives_exit_code_6(tmp_path: Path) -> None:
    text = INTERRUPTED_IMPORT.replace("MODULE", "dmlconf.cli.commands.running.list")
    done = dmlconf(tmp_path, "list", PYTHONPATH=python_path_with(tmp_path, text))
    assert (done.returncode, done.stderr) == (6, "\ninterrupted\n")


def test_ctrl_c_during_an_error_message_gives_exit_code_6(tmp_path: Path) -> None:
    text = INTERRUPTED_IMPORT.replace("MODULE", "dmlconf.run_log.log")
    arguments = ("devices", "--directml", "missing.dll")
    done = dmlconf(tmp_path, *arguments, PYTHONPATH=python_path_with(tmp_path, text))
    assert done.returncode == 6
    assert done.stderr.startswith("Error: ")
    assert done.stderr.endswith("\ninterrupted\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", "case.yaml", "-b", RIGHT), 0),
        (("run", "case.yaml", "-b", RIGHT, "-j", "2"), 0),
        (("devices",), 4),
        (("strength", "case.yaml", "-j", "2"), 0),
    ],
)
def test_a_worker_that_is_starting_ignores_ctrl_c(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    (tmp_path / "case.yaml").write_text(TILE, encoding="utf-8")
    done = dmlconf(tmp_path, *arguments, PYTHONPATH=python_path_with(tmp_path, INTERRUPTED_START))
    assert done.returncode == code, done.stderr
    assert "KeyboardInterrupt" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_outcomes_before_a_signal_get_verdicts(tmp_path: Path, number: int) -> None:
    witness.install(tmp_path / "plugins")
    (tmp_path / "case.yaml").write_text(witness.CASES, encoding="utf-8")
    notes = tmp_path / "notes"
    process = beginning(
        tmp_path,
        "run",
        "case.yaml",
        "-b",
        "witness",
        "-j",
        "2",
        "--log",
        LOG,
        PYTHONPATH=os.pathsep.join(
            (str(tmp_path / "plugins"), environment(tmp_path)["PYTHONPATH"])
        ),
        **{witness.FILE: str(notes)},
    )
    while text_of(notes).count("\n") < 60:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    handed_over = text_of(notes).splitlines()
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 6, errors
    log = read_log(tmp_path / LOG)
    judged = {v.case for v in log.verdicts if v.status is not Status.NOT_RUN}
    assert len(judged) < witness.COUNT
    assert set(handed_over) <= judged
    assert "Traceback" not in errors


def scratch_folders(path: Path) -> list[Path]:
    return [each for each in (path / "temporary").glob("dmlconf-*") if each.is_dir()]


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text("utf-8").split()
    names = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in listed}
    return [int(pid) for pid, name in names.items() if b"spawn_main" in name]
