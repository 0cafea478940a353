"""Run the commands of the tutorials again, and update what they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here, environment

__all__ = ["LAB_TUTORIALS", "TUTORIALS", "rerun", "stable_lines"]

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

TUTORIALS: Final = tuple(
    _DOCS / name
    for name in (
        "diagnosing-a-driver.md",
        "first-case.md",
        "first-failure.md",
        "fleet.md",
        "gating-ci.md",
    )
)
"""Pages whose commands are run."""

LAB_TUTORIALS: Final = (_DOCS / "first-run-on-windows.md",)

_FOLDERS_OF_TESTS: Final = ("DMLCONF_CACHE", "DMLCONF_LOG_DIRECTORY")
"""Variables with folders that programs in the Wine lab cannot use."""

_LAB: Final = _DOCS.parent / "lab" / "lab.py"

_BLOCK: Final = re.compile(
    r"^```(?:(yaml|toml|python|diff) (\S+)|console)\n(.*?)^```$", re.M | re.S
)
"""A file to write, a change to a file, or a command and its output."""

_PROGRESS: Final = re.compile(r"[0-9,]+ of [0-9,]+ cases, .*[0-9] (s|min)\b.*")

_CHANGING: Final = re.compile(r"(tested|run) ")
"""Lines of a report that name the machine and the time."""

_STAND_INS: Final = (
    (r"(run logs|cache) +[0-9,]+ (files )?in (\S+), [0-9.]+ MB", r"\1 in \3"),
    (r" +[0-9.]+ (m|µ)?s\b", " TIME"),
    (r"run-[0-9T.]+-[0-9]+\.jsonl", "LOG"),
    (r"\b([0-9],[0-9])[0-9]{2}\b", r"\g<1>00"),  # Counts grow with the suite.
    (r" +", " "),  # Longer times have wider columns.
    (r"─+|-{3,}", "─"),
)


def rerun(page: str) -> str:
    """Run a page's commands in an empty folder; return the page with their output."""
    with TemporaryDirectory() as name:
        folder = Path(name).resolve() / "here"
        folder.mkdir()
        run = _run_installed if "$ pip install" in page else _run_here
        if re.search("^> dmlconf", page, re.M):
            run = _run_in_lab
        return _BLOCK.sub(lambda block: _rerun_block(folder, block, run), page)


_Run = Callable[[Path, Sequence[str]], str]


def _rerun_block(folder: Path, block: re.Match[str], run: _Run) -> str:
    language, file, content = block.groups()
    if language == "diff":
        _change(folder / file, content.splitlines())
        return block[0]
    if file is not None:
        (folder / file).write_text(content, encoding="utf-8")
        return block[0]
    command = content.partition("\n")[0]
    program, *arguments = shlex.split(command.removeprefix("$ ").removeprefix("> "))
    if program == "cat":
        shown = (folder / arguments[0]).read_text("utf-8")
    elif program == "pip":
        shown = _installed(folder, arguments)
    else:
        assert program == "dmlconf"
        shown = run(folder, arguments).replace(str(folder), "~")
        shown = shown.replace(str(cases_directory().parent), "~/dmlconf")
    lines = [line.rstrip() for line in shown.splitlines() if not _PROGRESS.fullmatch(line)]
    return "\n".join(["```console", command, *lines, "```"])


def _change(file: Path, lines: Sequence[str]) -> None:
    """Replace lines that begin with a minus by those that begin with a plus."""
    old, new = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] == sign) for sign in ("-", "+")
    )
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def _run_here(folder: Path, arguments: Sequence[str]) -> str:
    done = dmlconf_here(folder, *arguments, COLUMNS="80", HOME=str(folder))
    return done.stdout + done.stderr


def _run_in_lab(folder: Path, arguments: Sequence[str]) -> str:
    done = subprocess.run(
        [sys.executable, _LAB, "run", "--", *arguments],
        cwd=folder,
        env={name: text for name, text in os.environ.items() if name not in _FOLDERS_OF_TESTS},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout.replace(r"Z:\checkout", r"Z:\dmlconf")


def _run_installed(folder: Path, arguments: Sequence[str]) -> str:
    packages = environment(folder)["PYTHONPATH"] + ":" + sysconfig.get_path("purelib")
    more = {"COLUMNS": "80", "PYTHONPATH": packages, "PYTHONUNBUFFERED": "1"}
    return subprocess.run(
        [_python_beside(folder), "-m", "dmlconf", *arguments],
        cwd=folder,
        env=environment(folder, HOME=str(folder), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    ).stdout


def _installed(folder: Path, arguments: Sequence[str]) -> str:
    """Run a command of pip in a new Python environment beside the folder."""
    python = _python_beside(folder)
    uv = [sys.executable, "-m", "uv"]
    subprocess.run(
        [*uv, "venv", "--quiet", "--python", sys.executable, python.parents[1]], check=True
    )
    subprocess.run([*uv, "pip", *arguments, "--python", python], cwd=folder, check=True)
    return ""


def _python_beside(folder: Path) -> Path:
    return folder.parent / "environment" / "bin" / "python"


def stable_lines(page: str) -> list[str]:
    """Return the lines without what differs from run to run, such as times and the machine.

    Counts of thousands of cases lose their last two digits.
    """
    lines = [line for line in page.splitlines() if not _CHANGING.match(line)]
    for pattern, stands_for in _STAND_INS:
        lines = [re.sub(pattern, stands_for, line) for line in lines]
    return lines
