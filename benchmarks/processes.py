"""Resource usage of a command and all its descendants, watched from outside through /proc."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Usage", "watched"]

POLL_SECONDS: Final = 0.1

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a command.

    Attributes:
        code: its exit code.
        output: what it wrote.
        seconds: wall time.
        processor_seconds: of all processes, except the last tenth of a second of each.
        peaks: the peak anonymous memory of each process, in bytes, the largest first.
    """

    code: int
    output: str
    seconds: float
    processor_seconds: float
    peaks: tuple[int, ...]


def watched(command: Sequence[str], cwd: Path) -> Usage:
    """Run a command, and watch it and its descendants."""
    began = time.perf_counter()
    running = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True)
    peaks: dict[int, int] = {}
    processor: dict[int, float] = {}
    while running.poll() is None:
        for number in _family(running.pid):
            seconds, memory = _usage(number)
            processor[number] = max(processor.get(number, 0.0), seconds)
            peaks[number] = max(peaks.get(number, 0), memory)
        time.sleep(POLL_SECONDS)
    output = running.stdout.read() if running.stdout else ""
    seconds = time.perf_counter() - began
    ordered = tuple(sorted(peaks.values(), reverse=True))
    return Usage(running.returncode, output, seconds, sum(processor.values()), ordered)


def _family(root: int) -> set[int]:
    """Return the numbers of a process and of all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    family: set[int] = set()
    waiting = [root]
    while waiting:
        number = waiting.pop()
        family.add(number)
        waiting += children.get(number, [])
    return family


def _stat(number: int) -> list[str]:
    """Return the fields of a process after its name, starting at its state; none if it has ended.

    Source: proc_pid_stat(5).
    """
    try:
        return (Path("/proc") / str(number) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _usage(number: int) -> tuple[float, int]:
    """Return the processor seconds and the anonymous bytes of a process; 0 if it has ended."""
    fields = _stat(number)
    seconds = (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0
    try:
        lines = (Path("/proc") / str(number) / "status").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    memory = sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
    return seconds, memory
