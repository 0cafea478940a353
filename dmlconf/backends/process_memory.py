"""Measure how much memory this process uses."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["committed_bytes"]

_STATM: Final = Path("/proc/self/statm")


class _Counters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS, of psapi.h."""

    _fields_ = (
        ("cb", ctypes.c_uint32),
        ("PageFaultCount", ctypes.c_uint32),
        *(
            (name, ctypes.c_size_t)
            for name in (
                "PeakWorkingSetSize",
                "WorkingSetSize",
                "QuotaPeakPagedPoolUsage",
                "QuotaPagedPoolUsage",
                "QuotaPeakNonPagedPoolUsage",
                "QuotaNonPagedPoolUsage",
                "PagefileUsage",
                "PeakPagefileUsage",
            )
        ),
    )


def committed_bytes() -> int:
    """Return how many bytes of memory this process uses; 0 if unknown, as on macOS.

    On Windows these are the committed bytes, on Linux those in physical memory.
    """
    if sys.platform == "win32":
        counters = _Counters(cb=ctypes.sizeof(_Counters))
        kernel = ctypes.WinDLL("kernel32")
        process = ctypes.c_void_p(-1)  # GetCurrentProcess() is always this.
        kernel.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb)
        return int(counters.PagefileUsage)
    with suppress(OSError, ValueError, IndexError):
        pages = int(_STATM.read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0
