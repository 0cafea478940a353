"""Run scripts that capture their own calls of DirectML."""

from __future__ import annotations

import json
import os
import runpy
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dmlconf.capture.captured import Captured, captured_from
from dmlconf.capture.journal import read_journal
from tests.cli.process import environment

IN_PROCESS = """
import ctypes, json, os, sys
from pathlib import Path
from dmlconf.capture.hooking.hooks import Capture, DataOptions
from dmlconf.capture.journal import JournalWriter
from tests.capture.hooking.application import Application

folder = Path(sys.argv[2])
def capture(dispatches=100):
    writer = JournalWriter(folder / "journal.jsonl")
    return Capture(writer, DataOptions(folder, dispatches, most_bytes=1 << 20))

results = []
"""
"""The beginning of a script that captures its own calls, run as `SCRIPT LIBRARY FOLDER`.

`capture()` starts the hooks; what the script adds to `results` is printed at its end.
"""


def in_process(
    directory: Path, wsl: Path, script: str, library: str = "application.so", **more: str
) -> tuple[list[Any], Captured]:
    """Run a script that captures its own calls; return its results, and what was captured."""
    file = directory / "script.py"
    file.write_text(IN_PROCESS + script + "\nprint(json.dumps(results))", encoding="utf-8")
    arguments = (str(wsl / library), str(directory))
    # The process is a copy of one that has imported dmlconf (`tests/forked.py`).
    process = get_context("spawn").Process(target=_run, args=(file, arguments))
    variables = environment(directory, DMLCONF_WSL_LIBRARIES=str(wsl), **more)
    with patch.dict(os.environ, variables, clear=True):
        process.start()
    process.join()
    assert process.exitcode == 0, (directory / "stderr").read_text("utf-8")
    captured = captured_from(read_journal(directory / "journal.jsonl"))
    return json.loads((directory / "stdout").read_text("utf-8")), captured


def _run(file: Path, arguments: tuple[str, ...]) -> None:
    """Run a script; what it prints goes to the files `stdout` and `stderr` next to it."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(file.parent / name, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.argv = [str(file), *arguments]
    runpy.run_path(str(file), run_name="__main__")
