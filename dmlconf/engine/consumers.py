"""Consumers: functions that take each event of a run, such as a verdict, as it happens.

The consumer that writes the run log takes each event first, so that no verdict is lost if another
consumer fails.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final, TypeVar

from dmlconf.engine.core import Engine
from dmlconf.engine.events import Event, Finished, Judged, Opened, Retried
from dmlconf.run_log.log import Footer, Header, LogWriteError, LogWriter, RunLog, read_back
from dmlconf.run_log.packed import packing, rounded
from dmlconf.verdicts.verdict import Verdict

__all__ = ["Consumer", "LogKeeper", "logging_to", "run_through", "run_to_end"]

Consumer = Callable[[Event], None]
"""Takes each event of a run, in order."""

_Item = TypeVar("_Item")

_PICKLED_AT_ONCE: Final = 256
"""How many verdicts are pickled together; objects that they share are stored once."""

_FASTEST: Final = 1
"""The level of compression of zlib: higher levels take longer and save little more."""


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

    Verdicts of a long run are pickled and compressed until it ends: they take 110 bytes each.
    """

    def __init__(self, most_unpickled: int = 2000) -> None:
        """Keep nothing yet.

        Args:
            most_unpickled: the verdicts of a run of at most this many cases are kept as they are.
        """
        self._most_unpickled = most_unpickled
        self._header: Header | None = None
        self._footer: Footer | None = None
        self._latest: list[tuple[int, Verdict]] = []
        self._earlier: list[bytes] = []

    def __call__(self, event: Event) -> None:
        """Keep what an event says."""
        match event:
            case Opened(header, resumed=False):
                self._header = read_back(header)
            case Judged(verdict, place):
                self._latest.append((place, verdict))
                if self._pickles and len(self._latest) >= _PICKLED_AT_ONCE:
                    content = pickle.dumps(self._latest, pickle.HIGHEST_PROTOCOL)
                    self._earlier.append(zlib.compress(content, _FASTEST))
                    self._latest = []
            case Finished(footer):
                self._footer = footer

    def take_log(self) -> RunLog | None:
        """Return the log, and forget it; None if the run was resumed, as its log began earlier."""
        if self._header is None:
            return None
        pack = packing() if self._pickles else rounded
        verdicts = {place: pack(verdict) for place, verdict in self._all()}
        return RunLog(
            self._header, tuple(verdicts[each] for each in sorted(verdicts)), self._footer
        )

    @property
    def _pickles(self) -> bool:
        return self._header is None or self._header.selected > self._most_unpickled

    def _all(self) -> Iterator[tuple[int, Verdict]]:
        for content in _taken(self._earlier):
            # The pickled content never leaves this process, so it can be trusted.
            yield from pickle.loads(zlib.decompress(content))
        yield from _taken(self._latest)


def _taken(items: list[_Item]) -> Iterator[_Item]:
    """Remove the items of a list, the last first, and yield each."""
    while items:
        yield items.pop()


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
