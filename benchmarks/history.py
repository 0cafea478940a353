"""Measure questions to a history: `python -m benchmarks.history [--small] [OTHER_CHECKOUT]`.

Makes a history of 1,000 nightly runs on ten drivers, of 2,000 cases each, with cases that began to
fail, were mended, or are flaky, and others whose outputs change in bits. Prints the processor time
of each question, as a whole process. Another checkout, whose environment is in its `.venv`, is
asked in turn. With `--small` there are 20 nights of 40 cases.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from benchmarks.suite import HERE, RUNS, Checkout, processor_time, rounds_of
from dmlconf.cases.model import Provenance
from dmlconf.history.adding import add
from dmlconf.history.database import opened
from dmlconf.run_log.log import Footer, Header, RunLog
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)

DRIVERS: Final = 10
FIRST: Final = datetime(2026, 1, 1, 2, tzinfo=UTC)
QUESTIONS: Final = (
    ("runs",),
    ("drivers",),
    ("case", "tile/matrix/0"),
    ("flaky",),
    ("regressions", "--since", "#1"),
    ("new",),
    ("new", "--markdown"),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much the history holds: nights, cases of each, and events of each kind among them."""

    nights: int
    cases: int
    events: int


WHOLE: Final = Size(1_000, 2_000, 30)
SMALL: Final = Size(20, 40, 3)


def night(number: int, size: Size, failing: frozenset[int], changed: frozenset[int]) -> RunLog:
    """Return the run of a night.

    Args:
        number: which night, from 0.
        size: of the history.
        failing: the cases that fail.
        changed: the cases whose outputs differ in a bit from what they mostly are.
    """
    started = (FIRST + timedelta(days=number)).isoformat()
    verdicts = tuple(verdict(n, n in failing, n in changed) for n in range(size.cases))
    counts = dict.fromkeys(map(str, Status), 0)
    for each in verdicts:
        counts[each.status] += 1
    environment = {
        "backend": "directml",
        "version": "1.15.4",
        "adapter": "GPU",
        "driver": f"{number * DRIVERS // size.nights}.0",
        "details": {},
        "platform": "Windows 11",
        "python": "3.12.1",
        "numpy": "2.3.2",
    }
    header = Header(
        dmlconf="0.2.0",
        started=started,
        backend="directml",
        against="numpy",
        environment=environment,
        paths=("cases",),
        suite_digest="a" * 64,
        catalogue_digest="c" * 64,
        selected=size.cases,
        options={},
    )
    return RunLog(header, verdicts, Footer(started, 60.0, True, counts))


def verdict(number: int, fails: bool, changed: bool) -> Verdict:
    """Return the verdict on one of the cases."""
    reason = Reason(ReasonKind.WRONG_VALUES, f"element {number}: 0 is not 1")
    return Verdict(
        Identity(f"tile/matrix/{number}", "TILE", ("matrix",), facts={"InputTensor": "FLOAT32"}),
        Judgement(
            status=Status.FAILED if fails else Status.PASSED,
            expectation=Provenance.DOCUMENTED,
            reason=reason if fails else None,
        ),
        Execution(seconds=0.001, output_digests={"OutputTensor": f"{changed:016x}"}),
    )


def nights(size: Size) -> Iterator[RunLog]:
    """Yield the runs: a third of the events are regressions, mended cases and flaky ones each."""
    source = random.Random(40)
    every = source.sample(range(size.cases), 3 * size.events)
    regressed, mended, flaky = (every[kind::3] for kind in range(3))
    moments = {case: source.randrange(1, size.nights) for case in (*regressed, *mended)}
    for number in range(size.nights):
        failing = {case for case in regressed if number >= moments[case]}
        failing |= {case for case in mended if number < moments[case]}
        failing |= {case for case in flaky if source.random() < 0.4}
        changed = source.sample(range(size.cases), size.events)
        yield night(number, size, frozenset(failing), frozenset(changed))


def main(arguments: list[str]) -> None:
    """Make the history, and measure the checkouts in turn."""
    small = "--small" in arguments
    folders = [HERE, *(Path(each) for each in arguments if each != "--small")]
    scratch = Path(tempfile.mkdtemp(prefix="dmlconf-benchmark-"))
    database = scratch / "history.sqlite"
    checkouts = [Checkout(folder, scratch / str(i)) for i, folder in enumerate(folders)]
    try:
        with opened(str(database), create=True) as history:
            for log in nights(SMALL if small else WHOLE):
                with history.writing() as connection:
                    add(connection, log)
        for question in QUESTIONS:
            measure = processor_time("history", *question, "--database", str(database))
            columns = zip(*rounds_of(measure, checkouts, 1 if small else RUNS), strict=True)
            text = "".join(f"{statistics.median(each):9.2f} s" for each in columns)
            print(f"{' '.join(question):32}{text}", flush=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main(sys.argv[1:])
