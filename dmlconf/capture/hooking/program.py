"""Run a Python program with the hooks that record its calls of DirectML.

The command is `python -P -m dmlconf.capture.hooking.program JOURNAL DATA -- PROGRAM ARGS`. DATA
says which data of dispatches is kept in the folder of the journal:

- `none`: no data
- `all,DISPATCHES,BYTES`: the first DISPATCHES dispatches of each operator and graph, at most BYTES
- `weights,0,BYTES`: weights, at most BYTES
- `statistics,1,BYTES`: only statistics, of the first dispatch of each operator and graph; BYTES is
  ignored

PROGRAM is a script, or `-m MODULE`. Its `sys.argv`, `sys.path` and `__main__` are as without the
hooks and PYTHONSAFEPATH. `-P` keeps the current folder out of `sys.path`.
"""

from __future__ import annotations

import atexit
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dmlconf.capture.hooking.hooks import Capture, DataOptions
from dmlconf.capture.journal import JournalWriter

__all__ = ["parsed", "run"]


def run(journal: Path, data: DataOptions | None, arguments: Sequence[str]) -> None:
    """Run a program with the hooks; its exceptions are raised here."""
    capture = Capture(JournalWriter(journal), data)
    # Hooks can no longer run once Python has begun to end.
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


def parsed(text: str, folder: Path) -> DataOptions | None:
    """Return the options that DATA stands for; None for `none`."""
    if text == "none":
        return None
    kind, dispatches, most_bytes = text.split(",")
    return DataOptions(folder, int(dispatches), int(most_bytes), kind == "statistics")


if __name__ == "__main__":
    _, journal_file, data_options, _, *program_arguments = sys.argv
    run(Path(journal_file), parsed(data_options, Path(journal_file).parent), program_arguments)
