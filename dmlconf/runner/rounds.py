"""Runs whose cases are generated while they run, in rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter

from dmlconf.cases.model import PlannedCase
from dmlconf.runner.interrupts import Uninterrupted, raise_if_interrupted
from dmlconf.runner.judge import not_run
from dmlconf.runner.log import Footer, Header, LogWriter, RunLog
from dmlconf.runner.log_consistency import cases_digest
from dmlconf.runner.verdict import ReasonKind, Status, Verdict

__all__ = ["in_rounds", "rewrite", "run_rounds"]

Judge = Callable[[Sequence[PlannedCase]], Generator[Verdict, None, None]]


def run_rounds(
    rounds: Iterable[Sequence[PlannedCase]],
    judge: Judge,
    log: LogWriter,
    header: Header,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    *,
    most_failures: int | None = None,
) -> Footer:
    """Run the rounds, and write header, verdicts and footer to the log.

    If the run is interrupted or stopped, the rest of the round gets `not run`; rounds after
    it are not part of the run, since their cases were not generated.

    Args:
        rounds: the cases; an iterator that generates each round when it is needed.
        judge: runs a round, and yields a verdict on each case.
        log: receives every verdict as it is reached.
        header: the log's first line.
        on_verdict: is called with every verdict after it was logged.
        most_failures: after how many verdicts that fail the run to stop; None for never.

    Raises:
        BackendError: a worker could not be replaced.
        LogWriteError: the log cannot be written any more.
    """
    began = perf_counter()
    counts: Counter[Status] = Counter()
    identifiers: list[str] = []
    uninterrupted = Uninterrupted()
    left: dict[str, tuple[int, PlannedCase]] = {}
    unreached: ReasonKind | None = None

    def record(verdict: Verdict) -> None:
        with uninterrupted:
            counts[verdict.status] += 1
            log.verdict(verdict, left.pop(verdict.case)[0])
        on_verdict(verdict)

    def failures() -> int:
        return sum(number for status, number in counts.items() if status.fails_run)

    log.header(header)
    try:
        for cases in rounds:
            for planned in cases:
                left[planned.identifier] = (len(identifiers), planned)
                identifiers.append(planned.identifier)
            with closing(judge(cases)) as verdicts:
                for verdict in verdicts:
                    record(verdict)
                    raise_if_interrupted()
                    if failures() == most_failures:
                        unreached = ReasonKind.TOO_MANY_FAILURES
                        break
            if unreached is not None:
                break
    except KeyboardInterrupt:
        unreached = ReasonKind.INTERRUPTED
    finally:
        for identifier, (_, planned) in list(left.items()):
            template = planned.template
            reason = unreached or ReasonKind.INTERRUPTED
            record(not_run(identifier, template.operator_name, template.tags, reason))
        summary = {status.value: counts[status] for status in Status}
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        seconds = round(perf_counter() - began, 3)
        digest = cases_digest(identifiers)
        complete = not counts[Status.NOT_RUN]
        footer = Footer(finished, seconds, complete, summary, digest)
        log.footer(footer)
    return footer


def rewrite(log: RunLog, writer: LogWriter) -> None:
    """Write a log again, with the number of cases that ran as the number selected."""
    writer.header(replace(log.header, selected=len(log.verdicts)))
    for place, verdict in enumerate(log.verdicts):
        writer.verdict(verdict, place)
    if log.footer is not None:
        writer.footer(log.footer)


def in_rounds(cases: Iterable[PlannedCase], size: int) -> Iterator[list[PlannedCase]]:
    """Yield the cases in lists of a size; the last may be shorter."""
    batch: list[PlannedCase] = []
    for planned in cases:
        batch.append(planned)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
