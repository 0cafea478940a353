"""Child processes that run dmlconf and import nothing from the working folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import dmlconf

__all__ = ["child_command", "keep_working_folder_off_path"]

_START: Final = (
    "import runpy, sys; sys.path.append({package!r}); "
    "runpy.run_module('dmlconf', run_name='__main__', alter_sys=True)"
)
"""The package's place comes last: a file next to it must not stand in for a standard module."""


def child_command(*arguments: str) -> list[str]:
    """Return the command that runs dmlconf in a child process with these arguments.

    Python puts the working folder first on the path of `python -m`, so a `numpy.py` in it would be
    executed. `-P` keeps it off the path.
    """
    package = str(Path(dmlconf.__file__).resolve().parents[1])
    return [sys.executable, "-P", "-c", _START.format(package=package), *arguments]


def keep_working_folder_off_path() -> None:
    """Keep the working folder off the path of every Python process that this one starts.

    Worker processes are started with `python -c`, which puts the working folder first as well,
    before it learns this process's path.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
