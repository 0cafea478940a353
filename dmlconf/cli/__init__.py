"""The command line: `commands` has a module for each command, imported when it is used.

No module here may be called `main`: a program that starts the function `dmlconf.cli:main` might
import that module instead.
"""

from __future__ import annotations

from dmlconf.cli.entry_point import main

__all__ = ["main"]
