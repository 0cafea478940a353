"""Run a Python program with the hooks: `python -m dmlconf.capture.program JOURNAL -- PROGRAM ARGS`.

PROGRAM is a script, or `-m MODULE`. The program sees the arguments, `sys.path` and `__main__` that
it would have without.
"""

from __future__ import annotations

import atexit
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dmlconf.capture.hooks import Capture
from dmlconf.capture.journal import JournalWriter

__all__ = ["run"]


def run(journal: Path, arguments: Sequence[str]) -> None:
    """Run a program, whose exceptions are not caught.

    Args:
        journal: receives what it gives to DirectML.
        arguments: the program and its arguments.
    """
    capture = Capture(JournalWriter(journal))
    # Calls that come while Python ends would find nothing to run in.
    atexit.register(capture.end)
    program, *rest = arguments
    if program == "-m":
        module, *rest = rest
        sys.argv = [module, *rest]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *rest]
        sys.path.insert(0, str(Path(program).resolve().parent))
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _, journal_file, _, *program_arguments = sys.argv
    run(Path(journal_file), program_arguments)
