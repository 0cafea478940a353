"""Run dmlconf's commands in a process of their own or, much faster, in the process of the test."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

from dmlconf.backends.process_start import INTERRUPTS
from dmlconf.cli.entry_point import main
from dmlconf.workers.tuning import thread_variables_set

DMLCONF = [sys.executable, "-m", "dmlconf"]

RIGHT = "faulty:slow,on=nothing"
"""A backend that is right in each case, but is not the reference."""

TILE = """
operator: TILE
cases:
  - name: stated
    note: Two by two.
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
"""


MANY = """
operator: TILE
cases:
  - name: stated
    matrix: {Number: "=range(1000)"}
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, LAST]}
"""
"""1,000 cases; they pass if LAST is 2."""


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return environment variables: 100 columns, a folder for logs, and `more`."""
    left_out = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", *thread_variables_set()}
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    logs = str(directory / "logs")
    return {**kept, "DMLCONF_LOG_DIRECTORY": logs, "COLUMNS": "100", "PYTHONPATH": path, **more}


def script(directory: Path) -> str:
    """Write a shell script that runs dmlconf, and return its path.

    A test's shell commands call it as `$D`, with an empty IFS, since the path may have spaces.
    """
    path = directory / "dmlconf.sh"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(DMLCONF)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def dmlconf(
    directory: Path, *arguments: str | Path, stdin: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run dmlconf in a process of its own; `more` are environment variables."""
    return subprocess.run(
        [*DMLCONF, *map(str, arguments)],
        cwd=directory,
        env=environment(directory, **more),
        capture_output=True,
        input=stdin,
        encoding="utf-8",
        timeout=600,
        check=False,
    )


def dmlconf_here(
    directory: Path, *arguments: str | Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run dmlconf in this process, which is faster than starting another."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    threshold = gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
    given = [str(argument) for argument in arguments]
    try:
        with (
            patch.dict(os.environ, environment(directory, **more), clear=True),
            chdir(directory),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            main(given)
    except SystemExit as end:
        code = end.code
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert isinstance(code, int)
    return subprocess.CompletedProcess(given, code, _text(out), _text(err))


def _text(stream: TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, BytesIO)
    return stream.buffer.getvalue().decode("utf-8")


def beginning(directory: Path, *arguments: str | Path, **more: str) -> subprocess.Popen[str]:
    """Start dmlconf in a process group of its own, which Ctrl-C interrupts."""
    return subprocess.Popen(
        [*DMLCONF, *map(str, arguments)],
        cwd=directory,
        env=environment(directory, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
        # Background processes of a shell, and their children, ignore SIGINT.
        preexec_fn=heed_interrupts if sys.platform != "win32" else None,
    )


def text_of(path: Path) -> str:
    """Return the content of a file that another process will write; empty while it is absent."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


def printed_by(script: str, directory: Path) -> str:
    """Return what Python code prints if it imports modules from a directory."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory)},
    ).stdout


def whole_lines(log: Path) -> list[bytes]:
    """Return the complete lines of a log that another process writes."""
    content = log.read_bytes() if log.exists() else b""
    return [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]


def heed_interrupts() -> None:
    """Let SIGINT interrupt this process again."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def write(directory: Path, text: str = TILE, name: str = "tile.yaml") -> Path:
    """Write a case file, by default TILE as `tile.yaml`, and return its path."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path
