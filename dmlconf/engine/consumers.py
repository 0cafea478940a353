"""Consumers of a run's events: the log first, so that nothing is lost, then all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Finished, Judged, Opened, Retried
from dmlconf.run_log.log import Footer, LogWriteError, LogWriter

__all__ = ["Consumer", "logging_to", "run_through", "run_to_end"]

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


def run_through(engine: Engine, log: Consumer, others: Sequence[Consumer] = ()) -> Footer:
    """Run, give each event to the log and then to the others, and return the run's end.

    A consumer other than the log that raises gets no more events; the run goes on, so that
    no verdict is lost, and the error is raised at its end.

    Args:
        engine: what runs.
        log: takes each event first. If it raises, the run ends.
        others: take each event afterwards.

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
    """Run, for a caller that can use nothing but a complete run.

    Args:
        engine: what runs.
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
