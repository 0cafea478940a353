"""The command line: `commands` has a module for each command, imported when it is used.

No module here may be called `main`: what starts `dmlconf.cli:main` may take it for that module.
"""

from __future__ import annotations

from dmlconf.cli.entry_point import main

__all__ = ["main"]
