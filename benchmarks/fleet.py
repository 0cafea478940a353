"""Measure shards and a scheduler's workers against one run on this machine.

`python -m benchmarks.fleet [--small] [waits|overhead|shards|scale]...` prints a table; it is not a
test. With `--small` each measurement is of a hundredth of the cases, once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from dmlconf.run_log.log import read_log

_DMLCONF: Final = (sys.executable, "-m", "dmlconf")
_CASES: Final = Path(__file__).resolve().parent.parent / "cases"
_REPEATS: Final = 3


@dataclass(frozen=True, slots=True)
class _Size:
    """How much a measurement runs.

    Attributes:
        repeats: how often.
        divisor: what numbers of cases are divided by.
        paths: the case files that are split into shards.
    """

    repeats: int
    divisor: int
    paths: Path


_WHOLE: Final = _Size(_REPEATS, 1, _CASES)
_SMALL: Final = _Size(1, 100, _CASES / "tile")

_SUITE: Final = """
operator: TILE
cases:
  - name: many
    note: The same case many times.
    matrix: {{Thousands: "=range({thousands})", Number: "=range(1000)"}}
    where: =Thousands * 1000 + Number < {count}
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
    path.write_text(_SUITE.format(count=count, thousands=-(-count // 1000)), encoding="utf-8")
    return path.name


def waits(folder: Path, size: _Size) -> None:
    """Measure two local workers against one, on a backend that waits as a device does."""
    cases = suite(folder, max(400 // size.divisor, 20))
    arguments = (cases, "-b", "faulty:slow,seconds=0.05", "--scheduler")
    ratios = []
    for _ in range(size.repeats):
        one, two = (run(folder, *arguments, f"local:{workers}") for workers in (1, 2))
        ratios.append(one / two)
        print(f"waits: one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f} times")
    print(f"waits: median {median(ratios):.2f} times\n")


def overhead(folder: Path, size: _Size) -> None:
    """Measure a scheduler with one worker against a worker process of this machine."""
    count = 4_000 // size.divisor
    arguments = (suite(folder, count), "-b", "faulty:slow,seconds=0")
    each = []
    for _ in range(size.repeats):
        alone = run(folder, *arguments)
        scheduled = run(folder, *arguments, "--scheduler", "local:1")
        each.append(1000 * (scheduled - alone) / count)
        print(f"overhead: alone {alone:.2f} s, Dask {scheduled:.2f} s: {each[-1]:+.3f} ms a case")
    print(f"overhead: median {median(each):+.3f} ms a case\n")


def shards(folder: Path, size: _Size) -> None:
    """Measure two shards of the whole suite, in sequence, and their merge against one run."""
    runs = {"one run": (), "shard 1": ("--shard", "1/2"), "shard 2": ("--shard", "2/2")}
    taken = {
        name: _measured(
            folder, "run", str(size.paths), "-j", "1", "-q", "--log", f"{name}.jsonl", *more
        )
        for name, more in runs.items()
    }
    logs = ("shard 1.jsonl", "shard 2.jsonl")
    taken["merge"] = _measured(folder, "merge", *logs, "-o", "merged.jsonl", "-q")
    for name, measured in taken.items():
        print(f"shards: {name} {measured.seconds:.1f} s, {measured.memory}")
    split = sum(taken[name].seconds for name in taken if name != "one run")
    print(f"shards: shards and merge {split / taken['one run'].seconds:.2f} times one run")
    merged, whole = (
        {
            verdict.case: (verdict.status, verdict.execution.output_digests)
            for verdict in log.verdicts
        }
        for log in (read_log(folder / name) for name in ("merged.jsonl", "one run.jsonl"))
    )
    print(f"shards: {len(whole):,} cases, the same statuses and outputs: {merged == whole}\n")
    if merged != whole:
        raise SystemExit("the merged log differs from that of one run")


_FORMS: Final = ("junit", "html", "markdown", "json")


def scale(folder: Path, size: _Size) -> None:
    """Measure time per case and memory of 10,000, 100,000 and 1,000,000 cases, and their reports.

    Times are processor time, minus that of a run of one case, because other work on the machine
    makes wall time unreliable. Memory is the largest resident set of the process.
    """
    start = _measured(folder, "run", suite(folder, 1), "-q", "--log", "1.jsonl").seconds
    for count in (each // size.divisor for each in (10_000, 100_000, 1_000_000)):
        name, log = suite(folder, count), f"{count}.jsonl"
        done = _measured(folder, "run", name, "-j", "1", "-q", "--log", log)
        each = 1e6 * (done.seconds - start) / count
        print(f"scale: {count:,} cases {done.seconds:.1f} s, {each:.0f} us a case, {done.memory}")
        for form in ("", *_FORMS):
            arguments = ["--report", f"{form}:report.{form}"] if form else []
            done = _measured(folder, "report", log, "-q", *arguments)
            written = folder / f"report.{form}"
            took = f"{done.seconds:.1f} s, {done.memory}"
            if form:
                took += f", {written.stat().st_size / 1e6:.1f} MB"
            print(f"scale:   report {form or 'terminal'} {took}")


@dataclass(frozen=True, slots=True)
class _Measured:
    """What a process took: processor seconds, and its largest resident set."""

    seconds: float
    mebibytes: float

    @property
    def memory(self) -> str:
        return f"{self.mebibytes:,.0f} MiB"


def _measured(folder: Path, *arguments: str) -> _Measured:
    """Run dmlconf to its end, on Linux."""
    command = [*_DMLCONF, *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    largest = 0.0
    # `wait4` includes the memory of child processes, so the system is asked instead.
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        largest = max(largest, _largest(process.pid))
        time.sleep(0.02)
    assert os.waitstatus_to_exitcode(ended[1]) == 0, command
    return _Measured(ended[2].ru_utime + ended[2].ru_stime, largest)


def _largest(process: int) -> float:
    """Return the largest resident set of a process so far, in MiB; 0 if it has ended."""
    status = Path(f"/proc/{process}/status").read_text("ascii", "replace")
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) / 1024 if match else 0.0


def main() -> None:
    """Run the named measurements, or all."""
    measures = {"waits": waits, "overhead": overhead, "shards": shards, "scale": scale}
    names = [name for name in sys.argv[1:] if name != "--small"]
    size = _SMALL if "--small" in sys.argv else _WHOLE
    for name in names or measures:
        with TemporaryDirectory() as folder:
            measures[name](Path(folder), size)


if __name__ == "__main__":
    main()
