"""The Wine lab runs the checkout's dmlconf on DirectML, and a run leaves no trace.

Build the lab first: python3 lab/lab.py build.

The tested code is in `lab/lab.py`, `lab/winelab/session.py`, `lab/winelab/isolation.py`,
`lab/winelab/check.py`, `lab/winelab/versions.py`, `dmlconf/workers/pool.py`,
`dmlconf/workers/locks.py`, `dmlconf/documents/whole_files.py`, `dmlconf/cli/common/logs.py` and
`dmlconf/backends/process_start.py`.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dmlconf import __version__
from tests.lab.running import SCRIPT, command, lab

pytestmark = pytest.mark.lab

Python = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    return lambda code: lab("python", "--", "-c", code, cwd=tmp_path)


def test_the_check_of_the_lab_passes(tmp_path: Path) -> None:
    done = lab("check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Windows Python 3.11" in done.stdout


def test_the_lab_runs_dmlconf_of_the_checkout(tmp_path: Path) -> None:
    done = lab("run", "--", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, f"dmlconf, version {__version__}")


def test_the_output_and_exit_code_of_a_program_are_passed_on(python: Python) -> None:
    done = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(70)")
    assert (done.returncode, done.stdout, done.stderr) == (70, "out\n", "err\n")


def test_files_are_written_to_the_directory_of_the_caller(tmp_path: Path) -> None:
    arguments = ("run", "-o", "TILE", "--tag", "documented", "--log", "sub/run.jsonl", "-q")
    (tmp_path / "sub").mkdir()
    done = lab("run", "--", *arguments, "--report", f"json:{tmp_path}/report.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sub/run.jsonl").stat().st_size
    assert (tmp_path / "report.json").stat().st_size


def test_programs_in_the_lab_cannot_change_the_checkout(python: Python) -> None:
    done = python(r"open(r'Z:\checkout\written-in-lab', 'w')")
    assert done.returncode == 1
    assert "OSError" in done.stderr or "PermissionError" in done.stderr
    assert not (SCRIPT.parents[1] / "written-in-lab").exists()


def test_the_next_run_lacks_a_file_written_in_the_lab(python: Python) -> None:
    code = r"import os; p = r'Z:\opt\lab\trace'; print(os.path.exists(p)); open(p, 'w')"
    assert [python(code).stdout for _ in range(2)] == ["False\n", "False\n"]


LOGS = """
from pathlib import Path
from click import UsageError
from dmlconf.cli.common.logs import opened_log, replace_log

log = Path("log.jsonl")
log.write_text("old")
with log.open():
    replace_log("-o", log, lambda stream: stream.write("new"))
print(log.read_text())
with opened_log(log) as living:
    living.write("living")
    living.flush()
    try:
        replace_log("-o", log, lambda stream: stream.write("newer"))
    except UsageError as error:
        print(error.message)
print(log.read_text(), *(path.name for path in Path().glob("*.tmp")))
"""


def test_a_log_is_replaced_while_a_reader_has_it_but_not_while_a_run_writes(python: Python) -> None:
    """Windows itself moves no file to the place of one that is open."""
    done = python(LOGS)
    assert done.stdout.splitlines() == [
        "new",
        "-o log.jsonl: a run is writing to it; give this log its own name",
        "living",
    ], done.stderr


def test_a_crash_of_a_worker_breaks_one_case(tmp_path: Path) -> None:
    arguments = ("run", "-o", "TILE", "--tag", "documented", "-b", "faulty:crash,on=example-1")
    done = lab("run", "--", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert "1 broken" in done.stdout


def test_three_concurrent_runs_do_not_disturb_each_other(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen(
            command("run", "--", "--version"), stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )
        for _ in range(3)
    ]
    printed = [run.communicate()[0].strip() for run in runs]
    assert printed == [f"dmlconf, version {__version__}"] * 3


STUBBORN: Final = """
import time
word = "started"
while True:
    try:
        print(word, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        word = "ignored"
"""

DOCILE: Final = """
import sys, time
try:
    print("started", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(77)
"""


@pytest.mark.parametrize(
    ("code", "signals", "expected"),
    [
        (DOCILE, [signal.SIGINT], 77),
        # 128 plus the number of the signal; SIGKILL cannot be handled.
        (STUBBORN, [signal.SIGINT, signal.SIGINT], 130),
        (STUBBORN, [signal.SIGTERM], 143),
        (STUBBORN, [signal.SIGKILL], -9),
    ],
    ids=["ctrl-c", "ctrl-c-twice", "terminated", "killed"],
)
def test_no_process_or_mount_outlives_the_command(
    code: str, signals: list[signal.Signals], expected: int, tmp_path: Path
) -> None:
    mark = f"mark-of-{tmp_path.name}"
    with subprocess.Popen(
        command("python", "--", "-c", f"{code}\n# {mark}"),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "started\n"
        for number in signals[:-1]:
            run.send_signal(number)
            assert run.stdout.readline() == "ignored\n"
        run.send_signal(signals[-1])
        assert run.wait() == expected
        # The pipe ends when the last process that holds it does.
        assert run.stdout.read() == ""
    assert str(tmp_path) not in Path("/proc/mounts").read_text("utf-8")
    assert not [path for path in Path("/proc").glob("[0-9]*") if mark in command_line(path)]


def command_line(process: Path) -> str:
    """Return the command line of a process in /proc, or an empty text if it has ended."""
    try:
        return (process / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.mark.parametrize(("version", "level"), [("1.8.0", "5_0"), ("1.15.4", "6_4")])
def test_devices_names_the_release_that_was_chosen(
    version: str, level: str, tmp_path: Path
) -> None:
    fetched = lab("versions", version, cwd=tmp_path)
    assert fetched.returncode == 0, fetched.stderr
    done = lab("run", "--directml-version", version, "--", "devices", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].strip() == f"DirectML {version}"
    assert re.search(rf"feature level\s+{level}\b", done.stdout)


@pytest.mark.parametrize(("version", "waived"), [("1.9.0", True), ("1.9.1", False)])
def test_a_fault_is_waived_only_in_releases_that_have_it(
    version: str, waived: bool, tmp_path: Path
) -> None:
    assert lab("versions", version, cwd=tmp_path).returncode == 0
    case = "one_hot/boundary/unsigned-is-never-negative"
    arguments = ("run", "--case", case, "-b", "directml", "--report", "json", "-q")
    done = lab("run", "--directml-version", version, "--", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [verdict] = json.loads(done.stdout)["verdicts"]
    assert verdict["status"] == ("waived" if waived else "passed")


def test_a_known_case_that_corrupts_memory_harms_no_other(tmp_path: Path) -> None:
    harmful = "gather/boundary/more-than-8-dimensions-with-those-of-the-indices"
    arguments = ("run", "-o", "GATHER", "--tag", "boundary", "-b", "directml", "--report", "json")
    done = lab("run", "--", *arguments, "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdicts = {each["case"]: each["status"] for each in json.loads(done.stdout)["verdicts"]}
    assert verdicts.pop(harmful) == "waived"
    assert set(verdicts.values()) <= {"passed", "unsupported"}


def test_an_interrupt_ends_a_run_whose_workers_are_at_work(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    arguments = ("run", "-o", "TILE", "-b", "faulty:hang", "-j", "2", "--log", log.name)
    with subprocess.Popen(
        command("run", "--", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    ) as run:
        while not log.is_file() or not log.stat().st_size:  # The header, once workers are ready.
            assert run.poll() is None
            time.sleep(0.1)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        output = run.communicate()[0]
    assert run.returncode == 6, output
    assert "bug in dmlconf" not in output


STARTING: Final = """
import multiprocessing, time

if __name__ != "__main__":
    print("importing", flush=True)
    time.sleep(5)

def work():
    print("survived", flush=True)

if __name__ == "__main__":
    from dmlconf.backends.process_start import children_ignore_interrupts

    process = multiprocessing.get_context("spawn").Process(target=work)
    with children_ignore_interrupts():
        process.start()
    try:
        print("waiting", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    process.join()
"""


def test_a_process_that_is_importing_ignores_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "starting.py").write_text(STARTING, encoding="utf-8")
    with subprocess.Popen(
        command("python", "--", "starting.py"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as run:
        assert run.stdout is not None
        # Before it waits, the process that started the other one ignores interrupts, too.
        assert {run.stdout.readline() for _ in range(2)} == {"importing\n", "waiting\n"}
        run.send_signal(signal.SIGINT)
        printed, errors = run.communicate()
    assert (run.returncode, printed) == (0, "interrupted\nsurvived\n"), errors
    assert "KeyboardInterrupt" not in errors
