"""Measure the suite: `python -m benchmarks.suite [--small] [--starts] [OTHER_CHECKOUT]`.

The backend is `numpy`. With another checkout, whose environment is in its `.venv`, both are
measured in turn, A B A B, and ratios are taken pair by pair. Commands that take little longer than
to start are measured in multiples of `import numpy` beside them; with `--starts` nothing else is.
With `--small` there is one round, over the cases of one operator.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent.parent
ONE_CASE: Final = "gather/documented/example-1-1d-remapping"
RUNS: Final = 5
RUN: Final = ("run", "-b", "numpy", "--quiet")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of dmlconf with its environment, and its own folders for logs and the cache."""

    folder: Path
    scratch: Path

    def start(self, *arguments: str, cache: bool = True) -> subprocess.Popen[bytes]:
        """Start dmlconf in the checkout."""
        return self.python("-m", "dmlconf", *arguments, cache=cache)

    def python(self, *arguments: str, cache: bool = True) -> subprocess.Popen[bytes]:
        """Start the checkout's Python, which may keep compiled modules, as it does by default."""
        environment = {
            **os.environ,
            "DMLCONF_LOG_DIRECTORY": str(self.scratch / "logs"),
            "DMLCONF_CACHE": str(self.scratch / "cache") if cache else "off",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        others = str(self.folder / ".venv" / "bin" / "python")
        command = [sys.executable if self.folder == HERE else others, *arguments]
        null = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=null, stderr=null)


Measure = Callable[[Checkout], float]
"""Returns seconds."""


def processor_time(*arguments: str) -> Measure:
    """Return a measure of the processor time of a command and the processes that it starts."""
    return python_time("-m", "dmlconf", *arguments)


def python_time(*arguments: str) -> Measure:
    """Return a measure of the processor time of Python and the processes that it starts."""

    def measure(checkout: Checkout) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code := checkout.python(*arguments).wait():
            raise SystemExit(f"python {' '.join(arguments)} ended with {code}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return measure


def first_verdict(paths: str, *, cache: bool) -> Measure:
    """Return a measure of the time until a run of the suite has logged its first verdict."""

    def measure(checkout: Checkout) -> float:
        log = checkout.scratch / "first.jsonl"
        log.unlink(missing_ok=True)
        began = time.perf_counter()
        process = checkout.start(*RUN, paths, "--log", str(log), cache=cache)
        while process.poll() is None:
            if log.exists() and b'"record":"verdict"' in log.read_bytes()[:10_000]:
                break
            time.sleep(0.005)
        else:
            raise SystemExit(f"dmlconf ended with {process.returncode} before a verdict")
        seconds = time.perf_counter() - began
        process.terminate()
        process.wait()
        return seconds

    return measure


def starts(paths: str) -> Mapping[str, Measure]:
    """Return the measures of commands that take little longer than to start."""
    return {
        "run of one case": processor_time(*RUN, paths, "--case", ONE_CASE),
        "run -o GATHER": processor_time(*RUN, paths, "-o", "GATHER"),
        "list -o GATHER": processor_time("list", paths, "-o", "GATHER"),
        "show": processor_time("show", ONE_CASE, paths),
    }


def measures(paths: str) -> Mapping[str, Measure]:
    """Return the measures over the cases below some paths."""
    return {
        "first verdict of the suite": first_verdict(paths, cache=True),
        "first verdict, without cache": first_verdict(paths, cache=False),
        "whole suite, processor time": processor_time(*RUN, paths, "-j", "auto"),
    }


def rounds_of(measure: Measure, checkouts: Sequence[Checkout], runs: int) -> list[list[float]]:
    """Return the seconds of each checkout, measured in turn, after one that does not count."""
    for checkout in checkouts:
        checkout.scratch.mkdir(exist_ok=True)
        measure(checkout)  # Fills the file cache and dmlconf's cache.
    return [[measure(checkout) for checkout in checkouts] for _ in range(runs)]


def print_starts(paths: str, checkouts: Sequence[Checkout], runs: int) -> None:
    """Print processor times of starts, and how many times that of `import numpy` each is."""
    numpy = python_time("-c", "import numpy")
    for name, measure in starts(paths).items():

        def multiple(checkout: Checkout, measure: Measure = measure) -> float:
            return measure(checkout) / numpy(checkout)

        columns = zip(*rounds_of(multiple, checkouts, runs), strict=True)
        text = "".join(f"{statistics.median(each):7.2f}" for each in columns)
        print(f"{name:32}{text} times import numpy", flush=True)


def main(arguments: list[str]) -> None:
    """Measure the checkouts in turn, and print medians and ratios."""
    small, only_starts = "--small" in arguments, "--starts" in arguments
    runs = 1 if small else RUNS
    folders = [HERE, *(Path(each) for each in arguments if not each.startswith("--"))]
    scratch = Path(tempfile.mkdtemp(prefix="dmlconf-benchmark-"))
    checkouts = [Checkout(folder, scratch / str(i)) for i, folder in enumerate(folders)]
    paths = "cases/gather" if small else "cases"
    try:
        print_starts(paths, checkouts, runs)
        for name, measure in ({} if only_starts else measures(paths)).items():
            rounds = rounds_of(measure, checkouts, runs)
            medians = [statistics.median(each) for each in zip(*rounds, strict=True)]
            text = f"{name:32}" + "".join(f"{median:9.2f} s" for median in medians)
            if len(checkouts) > 1:
                text += f"{statistics.median(own / other for own, other in rounds):7.2f} times"
            print(text, flush=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main(sys.argv[1:])
