"""Measure the suite on `numpy`: `python -m benchmarks.suite [OTHER_CHECKOUT]`.

With another checkout, whose environment is in its `.venv`, both are measured in turn, A B A B, and
ratios are taken pair by pair.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent.parent
ONE_CASE: Final = "gather/documented/example-1-1d-remapping"
RUNS: Final = 5
QUIET: Final = ("run", "cases", "-b", "numpy", "--quiet")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of dmlconf with its environment, and its own folders for logs and the cache."""

    folder: Path
    scratch: Path

    def start(self, *arguments: str, cache: bool = True) -> subprocess.Popen[bytes]:
        """Start dmlconf in the checkout."""
        environment = {
            **os.environ,
            "DMLCONF_LOG_DIRECTORY": str(self.scratch / "logs"),
            "DMLCONF_CACHE": str(self.scratch / "cache") if cache else "off",
        }
        program = self.folder / ".venv" / "bin" / "python"
        command = [str(program), "-m", "dmlconf", *arguments]
        null = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=null, stderr=null)


Measure = Callable[[Checkout], float]
"""Returns seconds."""


def processor_time(*arguments: str) -> Measure:
    """Return a measure of the processor time of a command and the processes that it starts."""

    def measure(checkout: Checkout) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        checkout.start(*arguments).wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return measure


def first_verdict(*, cache: bool) -> Measure:
    """Return a measure of the time until a run of the suite has logged its first verdict."""

    def measure(checkout: Checkout) -> float:
        log = checkout.scratch / "first.jsonl"
        log.unlink(missing_ok=True)
        began = time.perf_counter()
        process = checkout.start(*QUIET, "--log", str(log), cache=cache)
        while process.poll() is None:
            if log.exists() and b'"record":"verdict"' in log.read_bytes()[:10_000]:
                break
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        process.terminate()
        process.wait()
        return seconds

    return measure


MEASURES: Final[Mapping[str, Measure]] = {
    "one case, processor time": processor_time(*QUIET, "--case", ONE_CASE),
    "run -o GATHER, processor time": processor_time(*QUIET, "-o", "GATHER"),
    "first verdict of the suite": first_verdict(cache=True),
    "first verdict, without cache": first_verdict(cache=False),
    "whole suite, processor time": processor_time(*QUIET, "-j", "auto"),
}


def main(folders: list[Path]) -> None:
    """Measure the checkouts in turn, and print medians and ratios."""
    scratch = Path(tempfile.mkdtemp(prefix="dmlconf-benchmark-"))
    checkouts = [Checkout(folder, scratch / str(i)) for i, folder in enumerate(folders)]
    try:
        for name, measure in MEASURES.items():
            for checkout in checkouts:
                checkout.scratch.mkdir(exist_ok=True)
                measure(checkout)  # Fills the file cache and dmlconf's cache.
            rounds = [[measure(checkout) for checkout in checkouts] for _ in range(RUNS)]
            medians = [statistics.median(each) for each in zip(*rounds, strict=True)]
            text = f"{name:32}" + "".join(f"{median:9.2f} s" for median in medians)
            if len(checkouts) > 1:
                text += f"{statistics.median(own / other for own, other in rounds):7.2f} times"
            print(text, flush=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main([HERE, *map(Path, sys.argv[1:])])
