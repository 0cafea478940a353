"""Count the processors that this process may use."""

from __future__ import annotations

import os
import sys

from dmlconf.workers.control_groups import processor_quota

__all__ = ["usable_processors"]


def usable_processors() -> int:
    """Return how many processors this process may use, at least 1.

    On Windows and macOS, these are all processors of the machine, elsewhere those that `taskset` or
    a scheduler leaves to the process. From Python 3.13 on, `PYTHON_CPU_COUNT` may give another
    number. A container's quota limits the number.
    """
    count: int | None
    if sys.version_info >= (3, 13):
        count = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count()
    quota = processor_quota()
    return max(1, min(count or 1, quota or sys.maxsize))
