"""Settings of the interpreter and of NumPy that suit many small cases."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["collect_garbage_seldom", "compute_in_one_thread", "lasting_values"]

_MOST_GARBAGE: Final = 50_000
"""Objects between two searches for garbage, of which cases make hardly any."""


def collect_garbage_seldom() -> None:
    """Let Python look for garbage less often: imports and cases make none that is worth it."""
    gc.set_threshold(_MOST_GARBAGE)


@contextmanager
def lasting_values() -> Iterator[None]:
    """Let Python look for no garbage meanwhile, nor ever among what is alive afterwards.

    A suite is many values at once, all of which stay: to look through them again and again takes a
    third of the time in which they are read.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def compute_in_one_thread() -> None:
    """Keep NumPy's matrix products in the thread that asks for them, unless told otherwise.

    Nearly all tensors of cases are small: several threads take twice the processor time for the
    same products, and get in each other's way where worker processes run side by side. OpenBLAS
    reads the variable when NumPy is imported; worker processes inherit it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
