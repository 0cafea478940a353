"""Feed mutants to dmlconf in child processes, and watch their time and their end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

__all__ = ["Finding", "trial"]

MOST_SECONDS: Final = 10

_MOST_WALL_SECONDS: Final = 300
"""The most time between two lines of a child process."""
_PER_PROCESS: Final = 500
"""The most mutants of one child process."""
_ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Finding:
    """A mutant at which dmlconf failed; the seed makes it again."""

    kind: str
    seed: int
    problem: str

    def __str__(self) -> str:
        again = f"python -m tests.hostile mutants {self.kind} --first {self.seed} --count 1"
        return f"{self.kind} {self.seed}: {self.problem}\n  again: {again}"


def trial(
    kind: str, folder: Path, first: int, count: int, *, most_seconds: float = MOST_SECONDS
) -> Iterator[Finding]:
    """Feed `count` mutants to dmlconf, and yield those at which it failed; they stay in the folder.

    `kind` is a key of `subjects.SUBJECTS` or of `canaries.CANARIES`.
    """
    end = first + count
    while first < end:
        part = min(_PER_PROCESS, end - first)
        process = _start(kind, folder, first, part)
        reached = first
        try:
            for record in _records(process, most_seconds):
                reached = record["seed"]
                if "problem" in record:
                    yield Finding(kind, reached, record["problem"])
            if reached < first + part:
                yield Finding(kind, reached, f"the process ended, {process.wait()}")
                reached += 1
        except TimeoutError as error:
            yield Finding(kind, reached, str(error))
            reached += 1
        finally:
            process.kill()
            process.communicate()
        first = reached


def _start(kind: str, folder: Path, first: int, count: int) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    arguments = (kind, str(folder), str(first), str(count))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.hostile.child", *arguments],
        cwd=_ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # More threads reserve gigabytes.
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _records(process: subprocess.Popen[bytes], most_seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the lines of the child process; raise TimeoutError if a mutant takes too long."""
    assert process.stdout is not None
    used, began = 0.0, time.monotonic()
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 0.5)
        if ready:
            line = _line(process.stdout)
            if not line:
                return
            yield json.loads(line)
            used, began = _processor_seconds(process.pid), time.monotonic()
        elif _processor_seconds(process.pid) - used > most_seconds:
            raise TimeoutError(f"more than {most_seconds:g} seconds of work")
        elif time.monotonic() - began > _MOST_WALL_SECONDS:
            raise TimeoutError(f"waits for more than {_MOST_WALL_SECONDS} seconds")


def _line(stream: IO[bytes]) -> bytes:
    """Read one line without a buffer, which `select` would not see."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(stream.fileno(), 1)):
        line += byte
    return line


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
