"""Shards, and workers of a scheduler, beside one run on this machine.

`python -m benchmarks.fleet [waits|overhead|shards]...` prints a table; nothing here is a test.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from dmlconf.runner.log import read_log

_DMLCONF: Final = (sys.executable, "-m", "dmlconf")
_CASES: Final = Path(__file__).resolve().parent.parent / "cases"
_REPEATS: Final = 3

_SUITE: Final = """
operator: TILE
cases:
  - name: many
    note: The same case many times.
    matrix: {{Number: "=range({count})"}}
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32, values: [1, 2]}}
      OutputTensor: {{Sizes: [4], DataType: FLOAT32}}
      Repeats: [2]
    expect: {{OutputTensor: [1, 2, 1, 2]}}
"""


def run(folder: Path, *arguments: str) -> float:
    """Run dmlconf, and return the seconds from the log's first line to its last."""
    log = folder / "run.jsonl"
    command = [*_DMLCONF, "run", *arguments, "-q", "--log", str(log)]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    footer = read_log(log, own=True).footer
    assert footer is not None
    return footer.seconds


def suite(folder: Path, count: int) -> str:
    path = folder / f"many-{count}.yaml"
    path.write_text(_SUITE.format(count=count), encoding="utf-8")
    return path.name


def waits(folder: Path) -> None:
    """Two local workers beside one, on a backend that waits as a device does."""
    cases = suite(folder, 400)
    arguments = (cases, "-b", "miniature:slow,seconds=0.05", "--scheduler")
    ratios = []
    for _ in range(_REPEATS):
        one, two = (run(folder, *arguments, f"local:{workers}") for workers in (1, 2))
        ratios.append(one / two)
        print(f"waits: one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f} times")
    print(f"waits: median {median(ratios):.2f} times\n")


def overhead(folder: Path) -> None:
    """A scheduler with one worker beside a worker process of this machine."""
    count = 4_000
    arguments = (suite(folder, count), "-b", "miniature:slow,seconds=0")
    each = []
    for _ in range(_REPEATS):
        alone = run(folder, *arguments)
        scheduled = run(folder, *arguments, "--scheduler", "local:1")
        each.append(1000 * (scheduled - alone) / count)
        print(f"overhead: alone {alone:.2f} s, Dask {scheduled:.2f} s: {each[-1]:+.3f} ms a case")
    print(f"overhead: median {median(each):+.3f} ms a case\n")


def shards(folder: Path) -> None:
    """Two shards of the whole suite, one after the other, and their merging, beside one run."""
    logs = []
    seconds = {}
    for name, more in (("one", ()), ("1", ("--shard", "1/2")), ("2", ("--shard", "2/2"))):
        log = folder / f"{name}.jsonl"
        command = [*_DMLCONF, "run", str(_CASES), "-j", "1", "-q", "--log", str(log), *more]
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        seconds[name] = time.perf_counter() - began
        logs += [str(log)] if more else []
    merged = folder / "merged.jsonl"
    began = time.perf_counter()
    command = [*_DMLCONF, "merge", *logs, "-o", str(merged), "-q"]
    subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
    seconds["merge"] = time.perf_counter() - began
    print("shards: " + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()))
    counts = [read_log(each).footer for each in (merged, folder / "one.jsonl")]
    summaries = [footer.summary if footer else None for footer in counts]
    print(f"shards: the same summary: {summaries[0] == summaries[1]}\n")


def main() -> None:
    """Measure what is named, or all."""
    for name in sys.argv[1:] or ("waits", "overhead", "shards"):
        with TemporaryDirectory() as folder:
            {"waits": waits, "overhead": overhead, "shards": shards}[name](Path(folder))


if __name__ == "__main__":
    main()
