"""Run scripts that capture their own calls of DirectML."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    done = subprocess.run(
        [sys.executable, file, wsl / library, directory],
        capture_output=True,
        text=True,
        env=environment(directory, DMLCONF_WSL_LIBRARIES=str(wsl), **more),
    )
    assert done.returncode == 0, done.stderr
    captured = captured_from(read_journal(directory / "journal.jsonl"))
    return json.loads(done.stdout), captured
