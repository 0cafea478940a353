"""Measure reports of a large run with many failures: `python -m benchmarks.reports [LOG]`.

The log is of the whole suite on `numpy`; without one, it is created first. Failures are generated
from its passes, as a driver would cause them: where a condition holds, and at random. Times are
processor times, medians of repetitions, compared with reading the log in the same run.
"""

from __future__ import annotations

import io
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from dmlconf.diagnosis.shared_properties import shared_properties
from dmlconf.reports.runs import html, junit, terminal
from dmlconf.run_log.log import RunLog, read_log
from dmlconf.verdicts.verdict import Reason, ReasonKind, Status, Verdict
from dmlconf.workers.tuning import collect_garbage_seldom, compute_in_one_thread

ROUNDS: Final = 5
DIFFERENCE: Final = {
    "tensor": "OutputTensor",
    "coordinates": [0, 0],
    "expected": 1.5,
    "allowed": [[1.25, 1.75]],
    "actual": 2.0,
    "off_by": 4.0,
    "unit": "ULP",
}
REASON: Final = Reason(ReasonKind.WRONG_VALUES, "3 of 6 elements differ", (DIFFERENCE,) * 5)

Test = Callable[[Verdict], bool]


def conditions() -> dict[str, Test]:
    """Return the tests that turn passes into failures, by name."""
    chance = random.Random(1)
    return {
        "FLOAT16 in DataTypes": lambda v: any("FLOAT16 " in str(f) for f in v.facts.values()),
        "a fifth, at random": lambda v: chance.random() < 0.22,
    }


def with_failures(log: RunLog, fails: Test) -> RunLog:
    """Return the log with failures in place of the passes that a condition holds for."""
    return replace(
        log,
        verdicts=tuple(
            verdict.judged(status=Status.FAILED, reason=REASON)
            if verdict.status is Status.PASSED and fails(verdict)
            else verdict
            for verdict in log.verdicts
        ),
    )


def seconds(function: Callable[[], object]) -> float:
    """Return the median processor time of a call."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return statistics.median(times)


@contextmanager
def whole_log(given: list[str]) -> Iterator[Path]:
    """Yield the log of the whole suite, either the user's or a new one."""
    if given:
        yield Path(given[0])
        return
    with tempfile.TemporaryDirectory(prefix="dmlconf-reports-") as folder:
        path = Path(folder) / "whole.jsonl"
        command = ["run", "cases", "-b", "numpy", "-j", "auto", "--quiet", "--log", str(path)]
        subprocess.run([sys.executable, "-m", "dmlconf", *command], check=True)
        yield path


def lines(log: RunLog, *, quiet: bool = False, verbose: bool = False) -> int:
    """Return how many lines the terminal shows of a run."""
    text = io.StringIO()
    Console(file=text, width=100).print(terminal.render(log, quiet=quiet, verbose=verbose))
    return text.getvalue().count("\n")


def main(given: list[str]) -> None:
    """Print the measurements."""
    with whole_log(given) as path:
        peer = seconds(lambda: read_log(path, own=True))
        log = read_log(path, own=True)
    print(f"{len(log.verdicts):,} verdicts; reading the log takes {peer:.2f} s")
    passes = len(junit.render(log).encode()), len(html.render(log).encode())
    print(f"passing: JUnit {passes[0] / 1e6:.2f} MB, HTML {passes[1] / 1e6:.2f} MB")
    for name, fails in conditions().items():
        run = with_failures(log, fails)
        failures = sum(verdict.status.fails_run for verdict in run.verdicts)
        taken = seconds(lambda run=run: shared_properties(replace(run)))  # type: ignore[misc]
        size = len(html.render(run).encode()) / 1e6
        print(
            f"{failures:,} failures, {name}: shared properties {taken:.2f} s, "
            f"{taken / peer:.1f} times reading; HTML {size:.2f} MB; "
            f"{lines(run, quiet=True)} lines with -q, {lines(run)} without, "
            f"{lines(run, verbose=True)} with -v"
        )


if __name__ == "__main__":
    if "OPENBLAS_NUM_THREADS" not in os.environ:  # NumPy reads it once, and it is imported above.
        compute_in_one_thread()
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.reports", *sys.argv[1:]])
    collect_garbage_seldom()
    main(sys.argv[1:])
