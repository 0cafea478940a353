"""Measure questions to a history: `python -m benchmarks.history [OPTIONS] [OTHER_CHECKOUT]`.

Makes a history of 1,000 nightly runs on ten drivers, of 2,000 cases each, with cases that began to
fail, were mended, or are flaky, and others whose outputs change in bits. Prints the processor time
of each question, as a whole process. Another checkout, whose environment is in its `.venv`, is
asked in turn.

`--large` makes nights of 50,000 cases of 170 operators, of which 500 fail always. Two nights with
each driver are added, and the others written as the rows that adding leaves. `--postgres` keeps the
history in a PostgreSQL that the benchmark starts (Debian's package postgresql), with its default
settings; the processor time of the server counts. `--small` makes 20 nights of 40 cases.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import text

from benchmarks.nights import DRIVERS, LARGE, SMALL, WHOLE, Rows, Size, nights
from benchmarks.suite import HERE, RUNS, Checkout, Measure, processor_time, rounds_of
from dmlconf.history.adding import add
from dmlconf.history.database import Database, opened
from tests.history.postgres import Server, running_server

QUESTIONS: Final = (
    ("runs",),
    ("drivers",),
    ("case", "tile/matrix/0"),
    ("case", "tile/*"),
    ("flaky",),
    ("regressions", "--since", "#1"),
    ("new",),
    ("new", "--markdown"),
)

_LOADED: Final = 10_000
"""With at least so many cases in a night, most nights are written as rows instead of added."""


def fill(database: Database, size: Size, so_far: Callable[[], float]) -> list[float]:
    """Put all nights into a history, and return the processor time of adding each.

    Args:
        database: the history.
        size: of the history.
        so_far: returns the processor time of the server so far.
    """
    seconds = []
    before, rows = None, Rows()
    for night in nights(size):
        is_first = before is None or before.driver != night.driver
        is_second = night.number % (size.nights // DRIVERS) == 1
        if size.cases < _LOADED or is_first or is_second:
            log = night.log()
            began = time.process_time() + so_far()
            with database.writing() as connection:
                add(connection, log)
            seconds.append(time.process_time() + so_far() - began)
        else:
            assert before is not None
            with database.writing() as connection:
                rows.write(connection, night, before)
        before = night
    return seconds


def stored_bytes(database: Database) -> int:
    """Return how much space a history takes."""
    with database.reading() as connection:
        if connection.dialect.name == "postgresql":
            question = "SELECT pg_database_size(current_database())"
            return int(connection.execute(text(question)).scalar_one())
    assert database.engine.url.database is not None
    return Path(database.engine.url.database).stat().st_size


def server_seconds(server: Server) -> float:
    """Return the processor time of a server's processes, those that have ended included."""
    own = server.process.pid
    children = Path(f"/proc/{own}/task/{own}/children").read_text("ascii").split()
    seconds = _processor_seconds(str(own), 4)
    for child in children:
        with suppress(OSError):  # It may have ended meanwhile.
            seconds += _processor_seconds(child, 2)
    return seconds


def _processor_seconds(process: str, fields: int) -> float:
    """Return a process's user and system seconds (2 fields), and its ended children's too (4)."""
    stat = Path(f"/proc/{process}/stat").read_text("ascii")
    ticks = map(int, stat.rpartition(")")[2].split()[11 : 11 + fields])
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


@contextmanager
def history_in(scratch: Path, *, postgres: bool) -> Iterator[tuple[str, Callable[[], float]]]:
    """Give the name of an empty history, and a function: its server's processor seconds so far."""
    if not postgres:
        yield str(scratch / "history.sqlite"), lambda: 0.0
        return
    with running_server() as server:
        yield server.database("history"), lambda: server_seconds(server)


def with_server(measure: Measure, so_far: Callable[[], float]) -> Measure:
    """Return a measure that counts the processor time of the server as well."""

    def both(checkout: Checkout) -> float:
        before = so_far()
        return measure(checkout) + so_far() - before

    return both


def main(arguments: list[str]) -> None:
    """Make the history, and measure the checkouts in turn."""
    size = SMALL if "--small" in arguments else LARGE if "--large" in arguments else WHOLE
    folders = [HERE, *(Path(each) for each in arguments if not each.startswith("--"))]
    scratch = Path(tempfile.mkdtemp(prefix="dmlconf-benchmark-"))
    checkouts = [Checkout(folder, scratch / str(i)) for i, folder in enumerate(folders)]
    site = ("site", "-o", str(scratch / "pages"))
    try:
        with history_in(scratch, postgres="--postgres" in arguments) as (name, so_far):
            with opened(name, create=True) as history:
                seconds = fill(history, size, so_far)
                space = stored_bytes(history) / 1e6
            print(f"{'a night added, median':32}{statistics.median(seconds):9.2f} s")
            print(f"{'the slowest':32}{max(seconds):9.2f} s")
            print(f"{'space':32}{space:9.1f} MB", flush=True)
            for question in (*QUESTIONS, site):
                measure = processor_time("history", *question, "--database", name)
                rounds = rounds_of(
                    with_server(measure, so_far), checkouts, 1 if size is SMALL else RUNS
                )
                columns = zip(*rounds, strict=True)
                line = "".join(f"{statistics.median(each):9.2f} s" for each in columns)
                name_of_it = question[0] if question is site else " ".join(question)
                print(f"{name_of_it:32}{line}", flush=True)
            pages = sum(each.stat().st_size for each in (scratch / "pages").rglob("*.*"))
            print(f"{'pages of the site':32}{pages / 1e6:9.1f} MB")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main(sys.argv[1:])
