"""Describe in words how a process ended."""

from __future__ import annotations

import signal
from multiprocessing.process import BaseProcess
from typing import Final

__all__ = ["how_it_ended"]

_END_SECONDS: Final = 5.0
"""How long to wait for the end of a process that has closed its pipe."""


def how_it_ended(process: BaseProcess) -> str:
    """Return how a process ended, such as `died of SIGKILL` or `ended with exit code 1`.

    The process must have ended or closed its pipe. If it does not end within five seconds, the
    answer is `closed its pipe`.
    """
    process.join(_END_SECONDS)
    code = process.exitcode
    if code is None:
        return "closed its pipe"
    if code < 0:
        try:
            return f"died of {signal.Signals(-code).name}"
        except ValueError:
            return f"died of signal {-code}"
    if code > 0x8000_0000:
        return f"died of exception 0x{code:08x}"
    return f"ended with exit code {code}"
