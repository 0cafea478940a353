"""The command that starts the single file `dmlconf.pyz`, if dmlconf was started from it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from dmlconf.documents.problems import printable

__all__ = ["SINGLE_FILE", "what_to_type"]

SINGLE_FILE: Final = "DMLCONF_SINGLE_FILE"
"""The variable in which `release/boot/start.py` puts the path of the single file."""


def what_to_type() -> str | None:
    """Return a command such as `python3 dmlconf.pyz`; None if there is no single file."""
    file = os.environ.get(SINGLE_FILE)
    if not file:
        return None
    if sys.platform == "win32":
        return printable(f'py "{file}"')
    return printable(f"{_python()} {shlex.quote(file)}")


def _python() -> str:
    """Return the file name of this Python if the shell finds it by name, else its path."""
    name = Path(sys.executable).name
    on_path = shutil.which(name)
    if on_path is not None and Path(on_path).absolute() == Path(sys.executable).absolute():
        return name
    return shlex.quote(sys.executable)
