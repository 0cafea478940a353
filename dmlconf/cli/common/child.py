"""Child processes import nothing from the working folder."""

from __future__ import annotations

import os

__all__ = ["keep_working_folder_off_path"]


def keep_working_folder_off_path() -> None:
    """Keep the working folder off the path of every Python process that this one starts.

    Worker processes are started with `python -c`, which puts the working folder first as well,
    before it learns this process's path.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
