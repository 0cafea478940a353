"""Measure the DirectML backend in the Wine lab, in one run: `python -m benchmarks.directml`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
LAB: Final = (sys.executable, str(CHECKOUT / "lab" / "lab.py"))
RUNS: Final = 3
SUITE: Final = tuple(
    f"cases/{name}" for name in ("argmin", "gather", "join", "scatter_elements", "tile")
)


def timed(*arguments: str) -> tuple[float, str]:
    """Run a command in the lab; return its wall seconds and what it wrote."""
    began = time.perf_counter()
    done = subprocess.run(
        [*LAB, *arguments], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True
    )
    return time.perf_counter() - began, done.stdout


def bare_loop(*paths: str) -> None:
    """Measure whole runs of the suite against the bare loop over its cases."""
    ratios = []
    timed("python", "--", "-c", "import numpy")
    for _ in range(RUNS):
        plainly = ("-b", "directml", "--quiet", "--circumstances", "none")
        ours, _output = timed("run", "--", "run", *paths, *plainly)
        start, _output = timed("python", "--", "-c", "import numpy")
        _seconds, output = timed("python", "--", "-m", "benchmarks.peer_directml", *paths)
        cases, refused, loop = output.split()
        theirs = start + float(loop)
        ratios.append(ours / theirs)
        print(f"  {int(cases):,} cases, {refused} refused: dmlconf {ours:.1f} s, "
              f"bare loop {theirs:.1f} s, ratio {ratios[-1]:.2f}", flush=True)  # fmt: skip
    print(f"  median ratio {statistics.median(ratios):.2f}")


def isolation(*paths: str) -> None:
    """Measure what a case costs more in a worker than in dmlconf's own process."""
    _seconds, output = timed("python", "--", "-m", "benchmarks.isolation", *paths)
    extra, start = [], []
    for line in output.splitlines():
        cases, inside, outside, started = map(float, line.split())
        extra.append((outside - inside) / cases * 1000)
        start.append(started)
        print(f"  {cases:,.0f} cases: {inside:.2f} s in one process, {outside:.2f} s in a worker")
    print(f"  median {statistics.median(extra):.2f} ms a case more, "
          f"and {statistics.median(start):.2f} s to start the worker once")  # fmt: skip


def main() -> None:
    """Print both measures."""
    paths = sys.argv[1:] or SUITE
    print("whole process against a bare loop of the same calls")
    bare_loop(*paths)
    print("worker process against the same backend in one process")
    isolation(*paths)


if __name__ == "__main__":
    main()
