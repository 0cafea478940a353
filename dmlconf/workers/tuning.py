"""Settings of the interpreter and of NumPy that suit many small cases."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = [
    "collect_garbage_seldom",
    "compute_in_one_thread",
    "lasting_values",
    "thread_variables_set",
]

_THREADS: Final = "OPENBLAS_NUM_THREADS"

_changed_variables: Final[set[str]] = set()
"""The environment variables that `compute_in_one_thread` has set."""

_MOST_GARBAGE: Final = 50_000
"""Python collects garbage when this many more objects were created than freed."""


def collect_garbage_seldom() -> None:
    """Let Python collect garbage less often, since imports and cases leave hardly any."""
    gc.set_threshold(_MOST_GARBAGE)


@contextmanager
def lasting_values() -> Iterator[None]:
    """Collect no garbage in the block, and never scan the objects that are alive at its end.

    Such scans would take a third of the time of loading a suite.
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
    """Compute NumPy's matrix products in the calling thread, unless the environment says otherwise.

    This must be called before NumPy is imported. For small tensors, several threads take twice the
    processor time.
    """
    if _THREADS not in os.environ:
        os.environ[_THREADS] = "1"
        _changed_variables.add(_THREADS)


def thread_variables_set() -> frozenset[str]:
    """Return the environment variables that `compute_in_one_thread` has set.

    Applications that dmlconf starts must not inherit them.
    """
    return frozenset(_changed_variables)
