"""Progress on standard error: a bar on a terminal, else occasional lines."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from dmlconf.cli.output.console import say
from dmlconf.engine.consumers import Consumer
from dmlconf.engine.events import Event, Judged

__all__ = ["advancing", "progress", "spoken"]

_SECONDS: Final = 60.0
"""The most seconds without a line."""

_LEAST_CASES: Final = 1000
"""Plans of at least this many cases get a line for each quarter."""

_PARTS: Final = 4


@contextmanager
def progress(total: int | None, *, quiet: bool, color: str) -> Iterator[Callable[[bool], None]]:
    """Show a bar or occasional lines unless `quiet`; yield a function to call after each case.

    The argument of the function is whether the case fails the run.

    Args:
        total: how many cases there are; None if unknown.
    """
    if quiet:
        yield lambda failing: None
    elif sys.stderr.isatty():
        with _bar(total, color) as advance:
            yield advance
    else:
        lines = _PeriodicLines(total)
        try:
            yield lines.advance
        finally:
            lines.end()


def spoken(seconds: float) -> str:
    """Return a duration, rounded to at least `1 s`; from 90 s on in minutes, such as `3 min`."""
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def advancing(advance: Callable[[bool], None]) -> Consumer:
    """Return a consumer of a run's events that calls `advance` for each verdict."""

    def consume(event: Event) -> None:
        if isinstance(event, Judged):
            advance(event.verdict.status.fails_run)

    return consume


class _PeriodicLines:
    """Writes how far a run is: at each quarter of a large plan, and after a silent minute."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._done = self._failing = 0
        self._began = self._written = monotonic()
        self._ended = threading.Event()
        # A thread writes the lines while a case hangs and nothing calls `advance`.
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self._clock.start()

    def advance(self, failing: bool) -> None:
        self._done += 1
        self._failing += failing
        total = self._total
        if total is None or total < _LEAST_CASES:
            return
        if _PARTS * self._done // total > _PARTS * (self._done - 1) // total:
            self._write()

    def end(self) -> None:
        self._ended.set()

    def _tick(self) -> None:
        while not self._ended.wait(max(0.0, self._written + _SECONDS - monotonic())):
            if monotonic() >= self._written + _SECONDS:
                self._write()

    def _write(self) -> None:
        self._written = monotonic()
        failing = f", {self._failing:,} failing" if self._failing else ""
        seconds = monotonic() - self._began
        total = "" if self._total is None else f" of {self._total:,}"
        say(f"{self._done:,}{total} cases{failing}, {seconds:.0f} s{self._left(seconds)}")

    def _left(self, seconds: float) -> str:
        if not self._done or self._total is None or self._done >= self._total:
            return ""
        return f", about {spoken(seconds * (self._total - self._done) / self._done)} left"


@contextmanager
def _bar(total: int | None, color: str) -> Iterator[Callable[[bool], None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from dmlconf.cli.output.console import make_console

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    console = make_console(color, stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        failures = 0

        def advance(failing: bool) -> None:
            nonlocal failures
            failures += failing
            failures_text = f"{failures} failing" if failures else ""
            bar.update(task, advance=1, description=failures_text)

        yield advance
