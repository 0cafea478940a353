"""The command line: one module per command, imported when the command is used."""

from __future__ import annotations

from dmlconf.cli.main import main

__all__ = ["main"]
