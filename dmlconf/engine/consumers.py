"""Consumers, which are called with each event of a run.

The consumer of the run log comes first, so that no verdict is lost if another consumer fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Finished, Judged, Opened, Retried
from dmlconf.run_log.columns import MOST_OBJECTS, VerdictColumns
from dmlconf.run_log.log import Footer, Header, LogWriteError, LogWriter, RunLog, read_back
from dmlconf.run_log.packed import packing, rounded
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Consumer", "LogKeeper", "logging_to", "run_through", "run_to_end"]

Consumer = Callable[[Event], None]
"""Takes each event of a run, in order."""


def logging_to(log: LogWriter, *, failing: bool = False) -> Consumer:
    """Return a consumer that writes to a run log what the log lacks.

    If a line cannot be written, the consumer raises `LogWriteError`. The error's `failing` says
    whether a verdict fails the run, be it in this line or logged before.

    Args:
        failing: whether the log already has a verdict that fails the run.
    """

    def consume(event: Event) -> None:
        nonlocal failing
        try:
            match event:
                case Opened(header, resumed=False):
                    log.header(header)
                case Retried(attempt, place):
                    log.attempt(attempt, place)
                case Judged(verdict, place):
                    failing = failing or verdict.status.fails_run
                    log.verdict(verdict, place)
                case Finished(footer, logged=False):
                    log.footer(footer)
        except LogWriteError as error:
            error.failing = failing
            raise

    return consume


class LogKeeper:
    """A consumer that keeps the run log in memory for reports."""

    def __init__(self, most_unpacked: int = 2000, most_objects: int = MOST_OBJECTS) -> None:
        """Choose when to save memory, which makes reports take more time.

        Args:
            most_unpacked: in runs of more cases, or of an unknown number, verdicts are packed
                (`run_log.packed`).
            most_objects: in runs of more cases, verdicts are kept in columns (`run_log.columns`).
        """
        self._most_unpacked, self._most_objects = most_unpacked, most_objects
        self._header: Header | None = None
        self._footer: Footer | None = None
        self._kept: _Verdicts | VerdictColumns = _Verdicts(packing())

    def __call__(self, event: Event) -> None:
        """Keep the header, a verdict or the footer."""
        match event:
            case Opened(header, resumed=False):
                self._header = read_back(header)
                if self._header.selected > self._most_objects:
                    self._kept = VerdictColumns()
                elif 0 < self._header.selected <= self._most_unpacked:  # 0: it is not known.
                    self._kept = _Verdicts(rounded)
            case Judged(verdict, place):
                self._kept.add(verdict, place)
            case Finished(footer):
                self._footer = footer

    def take_log(self) -> RunLog | None:
        """Return the log, and forget its verdicts; None for a resumed run."""
        if self._header is None:
            return None
        kept, self._kept = self._kept, _Verdicts(packing())
        return RunLog(self._header, kept.in_order(), self._footer)


class _Verdicts:
    def __init__(self, pack: Callable[[Verdict], Verdict]) -> None:
        self._pack = pack
        self._verdicts: dict[int, Verdict] = {}

    def add(self, verdict: Verdict, place: int) -> None:
        self._verdicts[place] = self._pack(verdict)

    def in_order(self) -> Sequence[Verdict]:
        return tuple(self._verdicts[each] for each in sorted(self._verdicts))


def run_through(engine: Engine, log: Consumer, others: Sequence[Consumer] = ()) -> Footer:
    """Execute a run, pass each event to the log and then to the others; return the footer.

    Args:
        log: takes each event first; if it raises, the run ends.
        others: take each event after the log. A consumer that raises an `Exception` gets no more
            events; the first such error is raised after the run. `KeyboardInterrupt` stops the run.

    Raises:
        LogWriteError: the log cannot be written any more.
        ExpectedError: see `Engine.execute`.
    """
    footer: Footer | None = None
    errors: list[Exception] = []
    left = list(others)
    with closing(engine.execute()) as events:
        for event in events:
            log(event)
            left = list(_passed_to(left, event, errors, engine.stop))
            if isinstance(event, Finished):
                footer = event.footer
    if errors:
        raise errors[0]
    assert footer is not None
    return footer


def run_to_end(engine: Engine, consumer: Consumer) -> None:
    """Execute a run for a caller that needs a complete one.

    Raises:
        KeyboardInterrupt: the run ended early.
        ExpectedError: see `Engine.execute`.
    """
    if not run_through(engine, consumer).complete:
        raise KeyboardInterrupt


def _passed_to(
    consumers: Sequence[Consumer],
    event: Event,
    errors: list[Exception],
    stop: Callable[[], None],
) -> Iterable[Consumer]:
    """Call each consumer with an event; yield those that get further events."""
    for consumer in consumers:
        try:
            consumer(event)
        except KeyboardInterrupt:
            stop()
            yield consumer
        except Exception as error:
            errors.append(error)
        else:
            yield consumer
