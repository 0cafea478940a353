"""Count the processors that this process may use."""

from __future__ import annotations

import os
import sys

from dmlconf.workers.control_groups import processor_quota

__all__ = ["usable_processors"]


def usable_processors() -> int:
    """Return how many processors this process may use, at least 1.

    These are the processors that `taskset` or a scheduler leaves to the process, or the number in
    `PYTHON_CPU_COUNT` from Python 3.13 on, but at most as many as the quota of a container:
    `docker run --cpus 1.5` leaves 2. Before Python 3.13, they are all processors of the machine on
    Windows and macOS.
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
