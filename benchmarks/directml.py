"""Measure the DirectML backend in the Wine lab: `python -m benchmarks.directml [--small] [PATHS]`.

With `--small` the loop runs once, over the documented cases of TILE unless others are given.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Final

from benchmarks.processes import Usage, watched

CHECKOUT: Final = Path(__file__).resolve().parents[1]
LAB: Final = (sys.executable, str(CHECKOUT / "lab" / "lab.py"))
RUNS: Final = 3
SMALL: Final = ("--without-tag", "model", "-k", "not sizes")
"""Options that select cases that fit the loop's fixed memory."""

SUITE: Final = tuple(
    f"cases/{name}" for name in ("argmin", "gather", "join", "scatter_elements", "tile")
)

SMALL_SUITE: Final = ("cases/tile/documented.yaml",)


def used(*arguments: str) -> Usage:
    """Run a command in the lab, and return its usage.

    Raises:
        RuntimeError: it failed.
    """
    usage = watched([*LAB, *arguments], CHECKOUT)
    if usage.code:
        raise RuntimeError(f"{' '.join(arguments)} ended with {usage.code}")
    return usage


def bare_loop(runs: int, *paths: str) -> None:
    """Measure whole runs of the suite against the bare loop over its cases."""
    by_clock, by_processor = [], []
    used("python", "--", "-c", "import numpy")
    for _ in range(runs):
        plainly = ("-b", "directml", "--quiet", "--circumstances", "none", *SMALL)
        ours = used("run", "--", "run", *paths, *plainly)
        start = used("python", "--", "-c", "import numpy")
        peer = used("python", "--", "-m", "benchmarks.peer_directml", *paths)
        cases, refused, seconds, processor_seconds = peer.output.split()
        theirs = start.seconds + float(seconds)
        by_clock.append(ours.seconds / theirs)
        processor = start.processor_seconds + float(processor_seconds)
        by_processor.append(ours.processor_seconds / processor)
        print(
            f"  {int(cases):,} cases, {refused} refused: dmlconf {ours.seconds:.1f} s, bare loop "
            f"{theirs:.1f} s, ratio {by_clock[-1]:.2f}; processor time "
            f"{ours.processor_seconds:.1f} s and {processor:.1f} s, ratio {by_processor[-1]:.2f}",
            flush=True,
        )
    print(
        f"  median ratio {statistics.median(by_clock):.2f}, "
        f"by processor time {statistics.median(by_processor):.2f}"
    )


def isolation(*paths: str) -> None:
    """Measure what a case costs in a worker over dmlconf's own process."""
    output = used("python", "--", "-m", "benchmarks.isolation", *paths).output
    extra, start = [], []
    for line in output.splitlines():
        cases, inside, outside, started = map(float, line.split())
        extra.append((outside - inside) / cases * 1000)
        start.append(started)
        print(f"  {cases:,.0f} cases: {inside:.2f} s in one process, {outside:.2f} s in a worker")
    print(
        f"  median {statistics.median(extra):.2f} ms a case more, "
        f"and {statistics.median(start):.2f} s to start the worker once"
    )


def main() -> None:
    """Print both measures."""
    small = "--small" in sys.argv
    given = [path for path in sys.argv[1:] if path != "--small"]
    paths = given or (SMALL_SUITE if small else SUITE)
    print("whole process, against a bare loop of the same calls")
    bare_loop(1 if small else RUNS, *paths)
    print("worker process, against the same backend in one process")
    isolation(*paths)


if __name__ == "__main__":
    main()
