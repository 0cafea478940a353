"""A working folder that exists, for the start of other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["existing_working_folder"]


@contextmanager
def existing_working_folder() -> Iterator[None]:
    """Be in the root folder within the block if the working folder was deleted.

    Python tells a new process the name of the working folder, which has none then.
    """
    try:
        os.getcwd()  # noqa: PTH109  # Only whether it has a name.
    except FileNotFoundError:
        deleted = os.open(".", os.O_RDONLY)
        os.chdir("/")
        try:
            yield
        finally:
            os.fchdir(deleted)
            os.close(deleted)
    else:
        yield
