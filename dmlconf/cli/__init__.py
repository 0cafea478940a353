"""The command line: one module per command, imported when the command is used.

No module here may be called `main`: what starts `dmlconf.cli:main` may take it for that module.
"""

from __future__ import annotations

from dmlconf.cli.entry_point import main

__all__ = ["main"]
