"""Measure a worker's memory over a run in the Wine lab: `python -m benchmarks.worker_memory`.

DirectML keeps every pipeline until its device closes, so a worker grows with each new operator.
Each run takes a shard of the suite, in one worker, with a limit for its growth; the processes of
the lab are measured from outside, four times a second.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
LAB: Final = (sys.executable, str(CHECKOUT / "lab" / "lab.py"))
LIMITS_MIB: Final = (1 << 20, 512, 256)
SHARD: Final = "1/10"
POLL_SECONDS: Final = 0.25
MIB: Final = 1 << 20


def anonymous_bytes(process: Path) -> int:
    """Return the memory of a process that no file backs; 0 where it has ended."""
    try:
        lines = (process / "status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def descendants(root: int) -> dict[int, Path]:
    """Return the processes below a process, by number."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except (OSError, ValueError, IndexError):
            continue
    found, edge = {root}, {root}
    while edge:
        edge = {child for child, parent in parents.items() if parent in edge} - found
        found |= edge
    return {number: Path("/proc") / str(number) for number in found}


def measure(limit: int, shard: str) -> None:
    """Run a part of the suite with a limit in MiB, and print what its processes took."""
    began = time.perf_counter()
    running = subprocess.Popen(
        [*LAB, "run", "--", "run", "cases/", "--shard", shard, "-b", "directml", "--quiet",
         "--without-tag", "model", "--circumstances", "none", "--worker-memory", str(limit)],
        cwd=CHECKOUT, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    peaks: dict[int, int] = {}
    while running.poll() is None:
        for number, process in descendants(running.pid).items():
            peaks[number] = max(peaks.get(number, 0), anonymous_bytes(process))
        time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - began
    largest = ", ".join(f"{peak / MIB:,.0f}" for peak in sorted(peaks.values(), reverse=True)[:8])
    print(f"  limit {limit:,} MiB: {seconds:.0f} s, exit code {running.returncode}; the largest "
          f"processes took {largest} MiB", flush=True)  # fmt: skip


def main() -> None:
    """Print the memory with each limit."""
    shard = sys.argv[1] if len(sys.argv) > 1 else SHARD
    print(f"shard {shard} of the suite")
    for limit in map(int, sys.argv[2:]) if len(sys.argv) > 2 else LIMITS_MIB:
        measure(limit, shard)


if __name__ == "__main__":
    main()
