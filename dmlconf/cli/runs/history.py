"""Add a run to the history, as `run --history` asks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dmlconf.cli.output.console import say
from dmlconf.history.errors import HistoryError
from dmlconf.run_log.log import read_log

__all__ = ["HISTORY_VARIABLE", "add_to_history", "require_history"]

HISTORY_VARIABLE: Final = "DMLCONF_HISTORY"
"""The variable that names the history; by default, a file in the user's data folder."""


def require_history() -> None:
    """Check that the history can be opened; create it if there is none.

    Raises:
        HistoryError: the history cannot be opened or created.
    """
    from dmlconf.history.database import opened

    with opened(os.environ.get(HISTORY_VARIABLE) or None, create=True):
        pass


def add_to_history(log: Path) -> bool:
    """Add the run of a log to the history; if that fails, say why and return False.

    Raises:
        InvalidLogError: the log cannot be read.
    """
    from dmlconf.history.adding import add
    from dmlconf.history.database import opened

    try:
        with opened(os.environ.get(HISTORY_VARIABLE) or None, create=True) as history:
            run = read_log(log, own=True)
            with history.writing() as connection:
                add(connection, run)
    except HistoryError as error:
        say(f"Error: the run is not in the history: {error}")
        return False
    return True
