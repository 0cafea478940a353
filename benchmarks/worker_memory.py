"""Measure a worker's memory over a run in the Wine lab: `python -m benchmarks.worker_memory`.

DirectML keeps every pipeline until its device closes, so a worker grows with each new operator.
Each run takes a shard of the suite, in one worker, with a limit on its growth; the lab's processes
are measured from outside, ten times a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from benchmarks.processes import watched

CHECKOUT: Final = Path(__file__).resolve().parents[1]
LAB: Final = (sys.executable, str(CHECKOUT / "lab" / "lab.py"))
LIMITS_MIB: Final = (1 << 20, 512, 256)
SHARD: Final = "1/10"
MIB: Final = 1 << 20


def measure(limit: int, shard: str) -> None:
    """Run a part of the suite with a limit in MiB, and print what its processes took."""
    usage = watched(
        [
            *LAB,
            "run",
            "--",
            "run",
            "cases/",
            "--shard",
            shard,
            "-b",
            "directml",
            "--quiet",
            "--without-tag",
            "model",
            "--circumstances",
            "none",
            "--worker-memory",
            str(limit),
        ],
        CHECKOUT,
    )
    largest = ", ".join(f"{peak / MIB:,.0f}" for peak in usage.peaks[:8])
    print(
        f"  limit {limit:,} MiB: {usage.seconds:.0f} s, exit code {usage.code}; the largest "
        f"processes took {largest} MiB",
        flush=True,
    )


def main() -> None:
    """Print the memory with each limit."""
    shard = sys.argv[1] if len(sys.argv) > 1 else SHARD
    print(f"shard {shard} of the suite")
    for limit in map(int, sys.argv[2:]) if len(sys.argv) > 2 else LIMITS_MIB:
        measure(limit, shard)


if __name__ == "__main__":
    main()
