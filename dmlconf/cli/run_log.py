"""Run a plan into a log: from its beginning, or from where an earlier run ended."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dmlconf.cases.model import PlannedCase
from dmlconf.cli.logs import opened_log
from dmlconf.runner.earlier import EarlierRun
from dmlconf.runner.interrupts import Uninterrupted, raise_if_interrupted
from dmlconf.runner.log import Footer, Header, LogWriter
from dmlconf.runner.retries import Retries
from dmlconf.runner.run import run
from dmlconf.runner.verdict import Verdict

__all__ = ["LoggedRun"]


@dataclass(frozen=True)
class LoggedRun:
    """What to run, and into which log.

    Attributes:
        log: the file.
        header: its first line.
        cases: the selected cases.
        places: the place of each in the whole plan, if they are a shard; else None.
        earlier: the part of the run that the log has already.
        retries: how often to run a failing case again.
        most_failures: the number of failing cases after which to stop; None for never.
    """

    log: Path
    header: Header
    cases: Sequence[PlannedCase]
    places: Sequence[int] | None = None
    earlier: EarlierRun | None = None
    retries: int = 0
    most_failures: int | None = None

    @cached_property
    def left(self) -> Sequence[PlannedCase]:
        """The cases that have no verdict yet."""
        if self.earlier is None:
            return self.cases
        return [each for each in self.cases if each.identifier not in self.earlier.places]

    @cached_property
    def _places(self) -> dict[str, int]:
        places = self.places if self.places is not None else range(len(self.cases))
        return {each.identifier: place for each, place in zip(self.cases, places, strict=True)}

    def run(
        self,
        judge: Callable[[Sequence[PlannedCase]], Generator[Verdict, None, None]],
        advance: Callable[[bool], None],
    ) -> Footer:
        """Run what is left, and return the log's last line; a complete log stays as it is.

        Args:
            judge: runs cases, and yields a verdict on each.
            advance: called after each verdict, with whether it fails the run.

        Raises:
            click.UsageError: the log cannot be opened, or another run writes to it.
            LogWriteError: the log can no longer be written.
        """
        earlier = self.earlier
        if earlier is not None and earlier.complete and earlier.footer is not None:
            return earlier.footer
        most = self.most_failures
        to_come = None if most is None else max(0, most - (earlier.failures if earlier else 0))
        with opened_log(self.log, earlier) as stream:
            writer = LogWriter(stream)
            uninterrupted = Uninterrupted()

            def on_attempt(attempt: Verdict) -> None:
                with uninterrupted:
                    writer.attempt(attempt, self._places[attempt.case])
                raise_if_interrupted()

            retries = Retries(self.retries, on_attempt, earlier.attempts if earlier else None)
            return run(
                self.cases,
                retries.run(self.left, judge, to_come),
                writer,
                self.header,
                lambda verdict: advance(verdict.status.fails_run),
                most_failures=most,
                places=self.places,
                earlier=earlier,
                attempts=retries.attempts,
            )
