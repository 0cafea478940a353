"""Consumers: functions that take each event of a run, such as a verdict, as it happens.

The consumer that writes the run log takes each event first, so that no verdict is lost if another
consumer fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Finished, Judged, Opened, Retried
from dmlconf.run_log.log import Footer, Header, LogWriteError, LogWriter, RunLog, read_back
from dmlconf.run_log.packed import packing, rounded
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Consumer", "LogKeeper", "logging_to", "run_through", "run_to_end"]

Consumer = Callable[[Event], None]
"""Takes each event of a run, in order."""


def logging_to(log: LogWriter) -> Consumer:
    """Return a consumer that writes each event to a run log.

    The consumer raises `LogWriteError` if the log cannot be written any more.
    """
    failing = False

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
    """A consumer that keeps the content of the run log, so that reports need not read the file.

    Verdicts of a long run are packed, as `dmlconf.run_log.packed` says.
    """

    def __init__(self, most_unpacked: int = 2000) -> None:
        """Keep nothing yet.

        Args:
            most_unpacked: the verdicts of a run of at most this many cases are not packed.
        """
        self._most_unpacked = most_unpacked
        self._header: Header | None = None
        self._footer: Footer | None = None
        self._pack: Callable[[Verdict], Verdict] = packing()
        self._verdicts: dict[int, Verdict] = {}

    def __call__(self, event: Event) -> None:
        """Keep what an event says."""
        match event:
            case Opened(header, resumed=False):
                self._header = read_back(header)
                if self._header.selected <= self._most_unpacked:
                    self._pack = rounded
            case Judged(verdict, place):
                self._verdicts[place] = self._pack(verdict)
            case Finished(footer):
                self._footer = footer

    def take_log(self) -> RunLog | None:
        """Return the log, and forget it; None if the run was resumed, as its log began earlier."""
        if self._header is None:
            return None
        verdicts, self._verdicts = self._verdicts, {}
        return RunLog(
            self._header, tuple(verdicts[each] for each in sorted(verdicts)), self._footer
        )


def run_through(engine: Engine, log: Consumer, others: Sequence[Consumer] = ()) -> Footer:
    """Execute a run, pass each event to the log and then to others, and return the log's footer.

    If a consumer other than the log raises, it gets no more events. The run goes on, so that no
    verdict is lost, and the error is raised when it ends.

    Args:
        engine: executes the run.
        log: a consumer that takes each event first. If it raises, the run ends.
        others: consumers that take each event after the log has.

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
            left = list(_alive(left, event, errors, engine.stop))
            if isinstance(event, Finished):
                footer = event.footer
    if errors:
        raise errors[0]
    assert footer is not None
    return footer


def run_to_end(engine: Engine, consumer: Consumer) -> None:
    """Execute a run for a caller that can use only a complete one.

    Args:
        engine: executes the run.
        consumer: takes each event. If it raises, the run ends.

    Raises:
        KeyboardInterrupt: the run was interrupted.
        ExpectedError: see `Engine.execute`.
    """
    if not run_through(engine, consumer).complete:
        raise KeyboardInterrupt


def _alive(
    consumers: Sequence[Consumer],
    event: Event,
    errors: list[Exception],
    stop: Callable[[], None],
) -> Iterable[Consumer]:
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
